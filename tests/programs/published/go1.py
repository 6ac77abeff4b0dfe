import jax
import jax.numpy as jnp

DEFAULT_POSE = jnp.array([0.1, 0.9, -1.8, -0.1, 0.9, -1.8, 0.1, 0.9, -1.8, -0.1, 0.9, -1.8])


def get_observation(state):
    gravity = state.info["gravity"]
    gyro = state.info["gyro"] / 5.0
    lin_vel = state.info["local_linvel"] / 3.0
    pos_xy = state.info["pos_xy"]
    pos_dist = jnp.linalg.norm(pos_xy)
    pos_coarse = pos_xy / 1.0
    pos_fine = jnp.clip(pos_xy / 0.1, -5, 5)
    heading = state.info["heading"]
    dir_world = -pos_xy / (pos_dist + 1e-6)
    cos_h = jnp.cos(-heading)
    sin_h = jnp.sin(-heading)
    dir_body = jnp.array(
        [cos_h * dir_world[0] - sin_h * dir_world[1], sin_h * dir_world[0] + cos_h * dir_world[1]]
    )
    upvector = state.info["upvector"]
    up_z = upvector[-1]
    tilt_danger = jnp.maximum(0.0, 0.7 - up_z)
    qpos = state.data.qpos
    qvel = state.data.qvel
    future_pos = pos_xy + qvel[:2] * 0.2
    joint_dev = (qpos[7:] - DEFAULT_POSE) / jnp.pi
    joint_vel = qvel[6:] / 15.0
    push = state.info["push_force"]
    push_force = push / 400.0
    push_mag = jnp.linalg.norm(push)
    push_active = jnp.tanh(push_mag / 100.0)
    actuator_force = state.data.actuator_force / 50.0
    vel_toward = jnp.dot(qvel[:2], dir_world)
    step = state.info["step_count"].astype(jnp.float32)
    scalars = jnp.array([tilt_danger, state.info["height"] / 0.3, push_active, vel_toward, step / 500.0, (step % 75.0) / 75.0])
    return jnp.concatenate(
        [
            gravity,
            gyro,
            lin_vel,
            pos_coarse,
            pos_fine,
            jnp.array([pos_dist]),
            dir_body,
            jnp.array([jnp.sin(heading), jnp.cos(heading)]),
            upvector,
            joint_dev,
            joint_vel,
            state.info["last_act"],
            actuator_force,
            state.data.ctrl,
            push_force,
            future_pos,
            qvel[:3] / 3.0,
            qvel[3:6] / 5.0,
            scalars,
        ]
    ).astype(jnp.float32)


def compute_reward(state, action, next_state):
    up_z = next_state.info["upvector"][-1]
    pos_xy = next_state.info["pos_xy"]
    pos_dist = jnp.linalg.norm(pos_xy)
    prev_dist = jnp.linalg.norm(state.info["pos_xy"])
    upright = 4.0 * up_z
    upright_b = 10.0 * jnp.maximum(0.0, up_z - 0.8) ** 2
    tilt_pen = -20.0 * jnp.maximum(0.0, 0.65 - up_z) ** 2
    position = 4.0 * (0.3 * jnp.exp(-pos_dist) + 0.4 * jnp.exp(-5 * pos_dist) + 0.3 * jnp.exp(-20 * pos_dist))
    vel_xy = next_state.data.qvel[:2]
    far = jnp.tanh(pos_dist * 8.0)
    vel_toward = jnp.dot(vel_xy, -pos_xy / (pos_dist + 1e-6))
    vel_reward = far * jnp.tanh(vel_toward * 3) * 0.6
    stillness = -0.3 * (1.0 - far) * jnp.linalg.norm(vel_xy)
    progress = 2.0 * jnp.clip((prev_dist - pos_dist) * 40, -1, 1)
    fall_pen = -20.0 * (up_z < 0.3)
    heading_pen = -0.3 * jnp.abs(next_state.info["heading"])
    smooth_pen = -0.01 * jnp.sum((action - state.info["last_act"]) ** 2)
    torque_pen = -2e-4 * jnp.sum(next_state.data.actuator_force**2)
    survival = 0.3
    return (
        upright
        + upright_b
        + tilt_pen
        + position
        + progress
        + vel_reward
        + stillness
        + fall_pen
        + heading_pen
        + smooth_pen
        + torque_pen
        + survival
    )
