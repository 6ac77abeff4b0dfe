import jax
import jax.numpy as jnp

AMPLITUDE = jnp.array([0.10, 0.10, 0.07])
CENTRE = jnp.array([0.45, 0.0, 0.18])
BASE = 0.35
DT = 0.02


def _frequencies(params):
    w = jnp.array([params["freq_x"], params["freq_y"], params["freq_z"]]) * BASE
    phi = jnp.array([params["phase_x"], params["phase_y"], 0.0])
    return w, phi


def compute_lissajous(w, phi, t):
    return CENTRE + AMPLITUDE * jnp.sin(w * t + phi)


def get_observation(state):
    info = state.info
    arm_qpos = state.data.qpos[0:7] / jnp.pi
    arm_qvel = state.data.qvel[0:7] / 2.0
    gripper = info["gripper_pos"]
    target = info["target_pos"]
    error = target - gripper
    dist = info["gripper_target_dist"]
    error_fine = jnp.clip(error / 0.02, -5, 5)
    error_med = jnp.clip(error / 0.05, -5, 5)
    error_coarse = jnp.clip(error / 0.15, -5, 5)
    dist_feats = jnp.clip(jnp.array([dist / 0.02, dist / 0.05, dist / 0.15]), 0, 10)
    w, phi = _frequencies(info["traj_params"])
    t = info["step_count"] * DT
    target_vel = info["target_vel"] / 0.15
    target_acc = -AMPLITUDE * w**2 * jnp.sin(w * t + phi) / 0.03
    target_jerk = -AMPLITUDE * w**3 * jnp.cos(w * t + phi) / 0.05
    phases = jnp.concatenate([jnp.stack([jnp.sin(w[i] * t + phi[i]), jnp.cos(w[i] * t + phi[i])]) for i in range(3)])
    future_errs = []
    for dt, s in [(0.04, 0.05), (0.10, 0.05), (0.20, 0.1), (0.40, 0.1), (0.80, 0.2), (1.60, 0.2)]:
        future_target = compute_lissajous(w, phi, t + dt)
        future_errs.append(jnp.clip((future_target - gripper) / s, -5, 5))
    prev_ctrl = info["prev_ctrl"]
    ctrl_joint_err = (prev_ctrl[:7] - state.data.qpos[:7]) / 0.3
    error_dir = error / (jnp.linalg.norm(error) + 1e-6)
    vel_error_align = jnp.dot(target_vel, error_dir)
    steps = jnp.maximum(info["step_count"], 1)
    scalars = jnp.array(
        [
            vel_error_align,
            jnp.log(jnp.abs(dist) + 1e-3) / 7.0,
            info["step_count"] / 500.0,
            jnp.linalg.norm(target_vel),
            info["tracking_steps"] / steps,
            info["cumulative_tracking_error"] / steps,
        ]
    )
    return jnp.concatenate(
        [
            arm_qpos,
            arm_qvel,
            gripper,
            target,
            error_fine,
            error_med,
            error_coarse,
            dist_feats,
            target_vel,
            target_acc,
            target_jerk,
            phases,
            *future_errs,
            ctrl_joint_err,
            prev_ctrl,
            w,
            error_dir,
            state.data.qpos[7:9] / 0.04,
            scalars,
        ]
    ).astype(jnp.float32)


def compute_reward(state, action, next_state):
    dist = next_state.info["gripper_target_dist"]
    tight = jnp.exp(-0.5 * (dist / 0.02) ** 2)
    medium = jnp.exp(-0.5 * (dist / 0.05) ** 2)
    coarse = jnp.exp(-0.5 * (dist / 0.15) ** 2)
    tracking = 0.6 * tight + 0.3 * medium + 0.1 * coarse
    error = next_state.info["target_pos"] - next_state.info["gripper_pos"]
    error_dir = error / (jnp.linalg.norm(error) + 1e-6)
    target_vel = next_state.info["target_vel"]
    target_vel_dir = target_vel / (jnp.linalg.norm(target_vel) + 1e-6)
    dist_weight = jnp.clip(dist / 0.05, 0, 1)
    vel_bonus = 0.05 * jnp.dot(error_dir, target_vel_dir) * dist_weight
    ctrl_change = next_state.info["prev_ctrl"] - state.info["prev_ctrl"]
    ctrl_pen = -0.002 * jnp.linalg.norm(ctrl_change)
    act_pen = -0.001 * jnp.linalg.norm(action[:7])
    return tracking + vel_bonus + ctrl_pen + act_pen
