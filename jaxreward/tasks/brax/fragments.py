"""The vocabularies of Brax's robots: what a genetic proposer may build observations and rewards from.

The templates are shared; a robot fills in its constants and adds the templates of its task.
"""

from __future__ import annotations

from typing import NamedTuple

from jaxreward.records import Vocabulary
from jaxreward.tasks.fragment_template import SHAPES, Stage, Template, make_subgoals, make_vocabulary


class Robot(NamedTuple):
    """Where joints begin in q and qd, how many there are and where they stand at the start; of every motor the index in
    qd; rows of the bodies with feet and the feet's places in them (m); height of the standing torso (m)."""

    root: tuple[int, int]
    joints: int
    start: tuple[float, ...]
    motors: tuple[int, ...]
    feet: tuple[int, ...]
    soles: tuple[tuple[float, float, float], ...]
    height: float

    @property
    def planar(self) -> bool:
        """Whether its joints hold it in a plane."""
        return self.root == (3, 3)


ROBOTS = {
    "hopper": Robot((3, 3), 3, (0.0,) * 3, (3, 4, 5), (3,), ((-0.065, 0.0, 0.1),), 1.25),
    "walker2d": Robot((3, 3), 6, (0.0,) * 6, tuple(range(3, 9)), (3, 6), ((-0.1, 0.0, 0.1),) * 2, 1.25),
    "ant": Robot((7, 6), 8, (0.0, 1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 1.0), (12, 13, 6, 7, 8, 9, 10, 11), (2, 4, 6, 8),
                 ((0.4, 0.4, 0.0), (-0.4, 0.4, 0.0), (-0.4, -0.4, 0.0), (0.4, -0.4, 0.0)), 0.55),
    "humanoid": Robot((7, 6), 17, (0.0,) * 17, (7, 6, *range(8, 23)), (4, 6), ((0.0, 0.0, -0.35),) * 2, 1.4),
}  # fmt: skip

HELPERS = (
    SHAPES
    + '''

def turn(quat, vector):
    """Vectors (..., 3) turned by unit quaternions (..., 4)."""
    w, axis = quat[..., :1], quat[..., 1:]
    return vector + 2.0 * jnp.cross(axis, jnp.cross(axis, vector) + w * vector)


def in_body(state, vector):
    """A vector of the world (3,) in the frame of the torso."""
    return turn(state.x.rot[0] * jnp.array([1.0, -1.0, -1.0, -1.0]), vector)


def up_axis(state):
    """The torso's own up axis in the world (3,)."""
    return turn(state.x.rot[0], jnp.array([0.0, 0.0, 1.0]))


def ahead_axis(state):
    """The torso's own forward axis in the world (3,)."""
    return turn(state.x.rot[0], jnp.array([1.0, 0.0, 0.0]))


def height(state):
    return state.x.pos[0, 2]


def velocity(state):
    """Velocity of the torso in the world (3,), in m/s."""
    return state.xd.vel[0]


def joint_angles_of(state):
    return state.q[Q_ROOT:]


def joint_speeds_of(state):
    return state.qd[QD_ROOT:]


def feet(state):
    """Places of the feet in the world (feet, 3)."""
    rows = jnp.array(FEET)
    return state.x.pos[rows] + turn(state.x.rot[rows], jnp.array(SOLES))


def speed_over(state, next_state):
    """Forward speed of the torso over one step, in m/s."""
    return (next_state.x.pos[0, 0] - state.x.pos[0, 0]) / CONTROL_S
'''
)

PATROL_HELPERS = '''
def to_start(state):
    """From the torso to the start (2,), in m."""
    return -state.x.pos[0, :2]


def to_checkpoint(state):
    """From the torso to the checkpoint (2,), in m."""
    return jnp.stack([state.checkpoint, jnp.zeros(())]) - state.x.pos[0, :2]


def flat_in_body(state, vector):
    """A horizontal vector (2,): ahead of the torso, and to its left."""
    ahead = ahead_axis(state)[:2] / (length(ahead_axis(state)[:2]) + 1e-3)
    return jnp.stack([ahead[0] * vector[0] + ahead[1] * vector[1], ahead[0] * vector[1] - ahead[1] * vector[0]])


def returning(state):
    return (state.task_phase == 1).astype(jnp.float32)
'''

FEW, STEP, SMALL, PENALTY = (1.0, 2.0, 0.5), (10.0, 30.0, 3.0), (0.1, 0.3, 0.03), (0.01, 0.05, 0.003)


def F(name: str, tags: str, doc: str, line: str, size: int = 1) -> Template:
    return Template(name, tags, doc, line, size)


def T(name: str, tags: str, doc: str, line: str, scales: tuple[float, ...] = FEW) -> Template:
    return Template(name, tags, doc, line, 1, scales)


def _features(robot: Robot) -> tuple[Template, ...]:
    n, k = robot.joints, len(robot.feet)
    one = "jnp.reshape({}, (1,))".format
    sines = "jnp.concatenate([jnp.sin(joint_angles_of(state)), jnp.cos(joint_angles_of(state))])"
    return (
        F("joint_angles", "joints basic", "Angles of the joints.", "joint_angles_of(state)", n),
        F("joint_offsets", "joints", "Angles of the joints less those at the start.",
          "joint_angles_of(state) - jnp.array(START)", n),
        F("joint_sines", "joints", "Sines and cosines of the joints' angles.", sines, 2 * n),
        F("joint_speeds", "joints basic", "Speeds of the joints, scaled and cut.",
          "0.2 * jnp.clip(joint_speeds_of(state), -10.0, 10.0)", n),
        F("joint_speeds_squashed", "joints", "Speeds of the joints, squashed.",
          "jnp.tanh(0.3 * joint_speeds_of(state))", n),
        F("last_action", "actions", "The action of the step before.", "1.0 * state.last_action", n),
        F("up_in_world", "orientation", "The torso's up axis in the world.", "up_axis(state)", 3),
        F("ahead_in_world", "orientation", "The torso's forward axis in the world.", "ahead_axis(state)", 3),
        F("gravity_in_body", "orientation basic", "Which way is down, in the torso's frame.",
          "in_body(state, jnp.array([0.0, 0.0, -1.0]))", 3),
        F("torso_rotation", "orientation", "The torso's quaternion.", "1.0 * state.x.rot[0]", 4),
        F("torso_height", "height basic", "Height of the torso.", one("height(state)")),
        F("height_scales", "height", "Height of the torso less that of standing, at three scales.",
          "jnp.tanh((height(state) - STANDING) * jnp.array([1.0, 5.0, 20.0]))", 3),
        F("velocity_in_world", "velocity", "Velocity of the torso in the world.", "velocity(state)", 3),
        F("velocity_in_body", "velocity basic", "Velocity of the torso in its own frame.",
          "in_body(state, velocity(state))", 3),
        F("speed_scales", "velocity", "Forward speed of the torso at three scales.",
          "jnp.tanh(velocity(state)[0] * jnp.array([0.3, 1.0, 3.0]))", 3),
        F("spin_in_world", "spin", "Angular velocity of the torso in the world, scaled.", "0.3 * state.xd.ang[0]", 3),
        F("spin_in_body", "spin basic", "Angular velocity of the torso in its own frame, scaled.",
          "0.3 * in_body(state, state.xd.ang[0])", 3),
        F("feet_heights", "feet", "Heights of the feet.", "feet(state)[:, 2]", k),
        F("feet_down", "feet", "Which feet are near the floor.",
          "jax.nn.sigmoid(50.0 * (0.12 - feet(state)[:, 2]))", k),
        F("feet_in_body", "feet", "Where the feet are as the torso sees them.",
          "jax.vmap(lambda foot: in_body(state, foot - state.x.pos[0]))(feet(state)).reshape(-1)", 3 * k),
        F("time_passed", "time", "The part of the episode that is over.", one("state.step_count / HORIZON")),
    )  # fmt: skip


TERMS = (
    T("forward_speed", "shaping velocity", "Forward speed.", "speed_over(state, next_state)"),
    T("forward_slow", "shaping velocity", "Forward speed, saturating at about 1 m/s.",
      "jnp.tanh(speed_over(state, next_state))"),
    T("forward_fast", "shaping velocity", "Forward speed, saturating at about 5 m/s.",
      "5.0 * jnp.tanh(0.2 * speed_over(state, next_state))"),
    T("forward_cut", "shaping velocity", "Forward speed, cut at -1 and 3 m/s.",
      "jnp.clip(speed_over(state, next_state), -1.0, 3.0)"),
    T("pace_one", "shaping velocity", "A bell around 1 m/s.", "bell(speed_over(state, next_state) - 1.0, 0.5)"),
    T("pace_three", "shaping velocity", "A bell around 3 m/s.", "bell(speed_over(state, next_state) - 3.0, 1.5)"),
    T("along_body", "shaping velocity", "Speed along the torso's own forward axis.",
      "jnp.sum(ahead_axis(next_state) * velocity(next_state))"),
    T("faster", "shaping potential", "Speed gained since the step before.",
      "velocity(next_state)[0] - velocity(state)[0]"),
    T("alive", "alive", "1 for every step.", "jnp.float32(1.0)", (1.0, 0.5, 2.0, 5.0)),
    T("high", "alive height", "Whether the torso is above 0.7 of its standing height.",
      "(height(next_state) > 0.7 * STANDING).astype(jnp.float32)"),
    T("height_near", "shaping height", "A bell around the standing height.",
      "bell(height(next_state) - STANDING, 0.3 * STANDING)"),
    T("rising", "shaping potential height", "Height gained.", "height(next_state) - height(state)", STEP),
    T("upright", "shaping orientation", "Upward part of the torso's up axis.", "up_axis(next_state)[2]"),
    T("upright_near", "shaping orientation", "A bell around the upright torso.",
      "bell(1.0 - up_axis(next_state)[2], 0.2)"),
    T("righting", "shaping potential orientation", "Gain of the upward part of the torso's up axis.",
      "up_axis(next_state)[2] - up_axis(state)[2]", STEP),
    T("heading", "shaping orientation", "Forward part of the torso's forward axis.", "ahead_axis(next_state)[0]"),
    T("stillness", "shaping smooth", "A bell around a torso at rest.",
      "bell(length(velocity(next_state)), 0.5) * bell(length(next_state.xd.ang[0]), 1.0)"),
    T("feet_lifted", "shaping feet", "Height of the highest foot, at most 0.3 m.",
      "jnp.minimum(jnp.max(feet(next_state)[:, 2]), 0.3)"),
    T("action_cost", "penalty energy", "Minus the squared action.", "-jnp.sum(action**2)", SMALL),
    T("power_cost", "penalty energy", "Minus the power of the motors.",
      "-jnp.sum(jnp.abs(action * next_state.qd[jnp.array(MOTORS)]))", PENALTY),
    T("joint_speed_cost", "penalty energy", "Minus the squared speeds of the joints.",
      "-jnp.sum(jnp.clip(joint_speeds_of(next_state), -10.0, 10.0) ** 2)", (0.001, 0.01, 0.0003)),
    T("action_change_cost", "penalty smooth", "Minus the squared change of the action.",
      "-jnp.sum((action - state.last_action) ** 2)", SMALL),
    T("pose_cost", "penalty smooth", "Minus the squared distance of the joints from the start.",
      "-jnp.sum((joint_angles_of(next_state) - jnp.array(START)) ** 2)", SMALL),
    T("spin_cost", "penalty smooth", "Minus the squared angular velocity of the torso.",
      "-jnp.sum(jnp.clip(next_state.xd.ang[0], -10.0, 10.0) ** 2)", PENALTY),
    T("bounce_cost", "penalty smooth", "Minus the squared vertical speed.",
      "-jnp.clip(velocity(next_state)[2], -5.0, 5.0) ** 2", SMALL),
)  # fmt: skip

SIDEWAYS_FEATURES = (
    F("sideways", "position", "Distance to the left of the line ahead.",
      "jnp.reshape(jnp.tanh(state.x.pos[0, 1]), (1,))"),
)  # fmt: skip
SIDEWAYS_TERMS = (
    T("sideways_speed_cost", "penalty drift", "Minus the squared sideways speed.",
      "-jnp.clip(velocity(next_state)[1], -5.0, 5.0) ** 2", SMALL),
    T("sideways_cost", "penalty drift", "Minus the distance from the line ahead, squashed.",
      "-jnp.tanh(jnp.abs(next_state.x.pos[0, 1]))", SMALL),
)  # fmt: skip

LIE_DOWN_TERMS = (
    T("tipped", "shaping orientation", "Downward part of the torso's up axis.", "-up_axis(next_state)[2]"),
    T("tipping", "shaping potential orientation", "Gain of the downward part of the torso's up axis.",
      "up_axis(state)[2] - up_axis(next_state)[2]", STEP),
    T("on_edge", "shaping orientation", "A bell around a torso that stands on its edge.",
      "bell(up_axis(next_state)[2], 0.4)", SMALL),
    T("feet_above", "shaping feet", "How high the feet are above the torso on average.",
      "jnp.mean(feet(next_state)[:, 2]) - height(next_state)"),
    T("low", "shaping height", "A bell around a torso that lies on the floor.",
      "bell(height(next_state) - 0.25, 0.2)", SMALL),
    T("rolling", "shaping spin", "Speed of the turn about horizontal axes, at most 5 rad/s.",
      "jnp.minimum(length(next_state.xd.ang[0, :2]), 5.0)", SMALL),
)  # fmt: skip

PATROL_FEATURES = (
    F("checkpoint_in_body", "goal basic about:checkpoint", "The way to the checkpoint as the torso sees it, squashed.",
      "jnp.tanh(0.3 * flat_in_body(state, to_checkpoint(state)))", 2),
    F("start_in_body", "goal basic about:start", "The way to the start as the torso sees it, squashed.",
      "jnp.tanh(0.3 * flat_in_body(state, to_start(state)))", 2),
    F("checkpoint_in_world", "position about:checkpoint", "The way to the checkpoint.",
      "0.3 * to_checkpoint(state)", 2),
    F("start_in_world", "position about:start", "The way to the start.", "0.3 * to_start(state)", 2),
    F("start_scales", "goal about:start", "Distance to the start at three scales.",
      "jnp.tanh(state.dist_to_start * jnp.array([0.3, 1.0, 3.0]))", 3),
    F("phase", "phase basic", "Whether the checkpoint has been passed.", "jnp.reshape(returning(state), (1,))"),
)  # fmt: skip
PATROL_TERMS = (
    T("closer_to_checkpoint", "potential about:checkpoint", "The way made towards the checkpoint.",
      "length(to_checkpoint(state)) - length(to_checkpoint(next_state))", STEP),
    T("closer_to_start", "potential about:start", "The way made towards the start.",
      "length(to_start(state)) - length(to_start(next_state))", STEP),
    T("leaving", "shaping about:checkpoint", "Forward speed before the checkpoint is passed.",
      "(1.0 - returning(state)) * jnp.clip(speed_over(state, next_state), -2.0, 2.0)"),
    T("coming_back", "shaping about:start", "Backward speed after the checkpoint is passed.",
      "-returning(state) * jnp.clip(speed_over(state, next_state), -2.0, 2.0)"),
    T("near_checkpoint", "shaping about:checkpoint", "A bell of 1 m around the checkpoint.",
      "bell(length(to_checkpoint(next_state)), 1.0)", SMALL),
    T("near_start", "shaping about:start", "A bell of 1 m around the start.", "bell(next_state.dist_to_start, 1.0)",
      SMALL),
    T("passed", "milestone about:checkpoint", "The step that passes the checkpoint.",
      "returning(next_state) - returning(state)", (10.0, 3.0, 30.0)),
    T("away_cost", "penalty about:start", "Minus the distance to the start once the checkpoint is passed.",
      "-returning(next_state) * jnp.minimum(next_state.dist_to_start, 5.0)", SMALL),
)  # fmt: skip

PATROL_SUBGOALS = make_subgoals(
    (
        Stage("run past the checkpoint", ("checkpoint_in_body", "checkpoint_in_world"), ("way_out",), "on_way_home",
              "the checkpoint has been passed, and the ant has not fallen"),
        Stage("come back to the start", ("start_in_body", "start_in_world", "start_scales"), ("way_home",)),
    ),
    T("is_back", "milestone about:start", "Whether the ant is within 0.5 m of the start, the checkpoint passed.",
      "returning(next_state) * (next_state.dist_to_start < 0.5)", (10.0, 30.0, 5.0)),
    '''
def on_way_home(state):
    """Whether the checkpoint has been passed; not where a torso too high or too low ends the episode."""
    return returning(state) * (state.x.pos[0, 2] > 0.2) * (state.x.pos[0, 2] < 1.0)
''',
    (10.0, 30.0, 5.0),
    (
        T("way_out", "potential about:checkpoint", "The way made towards the checkpoint, until it is passed.",
          "(1.0 - returning(state)) * (length(to_checkpoint(state)) - length(to_checkpoint(next_state)))", STEP),
        T("way_home", "potential about:start", "The way made towards the start, once the checkpoint is passed.",
          "returning(state) * (length(to_start(state)) - length(to_start(next_state)))", STEP),
    ),
)  # fmt: skip


def vocabulary(kind: str, control_s: float, horizon: int) -> Vocabulary:
    """Features and terms for one of `ROBOTS`, `ant-lie-down` or `ant-patrol-return`."""
    robot = ROBOTS[kind.split("-")[0]]
    constants = {
        "CONTROL_S": repr(round(control_s, 6)), "HORIZON": repr(float(horizon)), "STANDING": repr(robot.height),
        "START": repr(robot.start), "MOTORS": repr(robot.motors), "FEET": repr(robot.feet),
        "SOLES": repr(robot.soles), "Q_ROOT": str(robot.root[0]), "QD_ROOT": str(robot.root[1]),
    }  # fmt: skip
    features, terms, helpers = _features(robot), TERMS, HELPERS
    if not robot.planar:
        features, terms = features + SIDEWAYS_FEATURES, terms + SIDEWAYS_TERMS
    if kind == "ant-lie-down":
        terms += LIE_DOWN_TERMS
    if kind == "ant-patrol-return":
        features, terms, helpers = features + PATROL_FEATURES, terms + PATROL_TERMS, helpers + PATROL_HELPERS
    return make_vocabulary(features, terms, helpers, constants)
