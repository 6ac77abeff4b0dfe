"""The names that a program may use: an allow-list, so that a new JAX adds nothing by itself.

A forbidden name cannot be recognised by its form: `jax.version.subprocess` has no underscore anywhere.
"""

from __future__ import annotations


def name_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODULES = ("jax", "jax.numpy", "jax.numpy.linalg", "jax.nn", "jax.lax")

JAX = name_set("Array grad jit value_and_grad vmap")

NUMPY = name_set(
    """
abs absolute acos acosh add all allclose amax amin angle any append apply_along_axis apply_over_axes arange arccos
arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort argwhere around array array_equal
array_equiv array_split asarray asin asinh astype atan atan2 atanh atleast_1d atleast_2d atleast_3d average bartlett
bfloat16 bincount bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or
bitwise_right_shift bitwise_xor blackman block bool_ broadcast_arrays broadcast_shapes broadcast_to c_ can_cast cbrt
ceil choose clip column_stack compress concat concatenate conj conjugate convolve copy copysign corrcoef correlate cos
cosh count_nonzero cov cross cumprod cumsum cumulative_prod cumulative_sum deg2rad degrees delete diag diag_indices
diag_indices_from diagflat diagonal diff digitize divide divmod dot dsplit dstack dtype e ediff1d einsum
equal euler_gamma exp exp2 expand_dims expm1 extract eye fabs fill_diagonal finfo flatnonzero flip fliplr
flipud float16 float32 float_power floating floor floor_divide fmax fmin fmod frexp fromfunction full full_like gcd
geomspace gradient greater greater_equal hamming hanning heaviside histogram histogram2d histogram_bin_edges
histogramdd hsplit hstack hypot i0 identity iinfo imag index_exp indices inexact inf inner insert int16 int32 int8
int_ integer interp intersect1d invert isclose iscomplex iscomplexobj isdtype isfinite isin isinf isnan isneginf
isposinf isreal isrealobj isscalar issubdtype ix_ kaiser kron lcm ldexp left_shift less less_equal lexsort linspace
log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logspace mask_indices matmul
matrix_transpose matvec max maximum mean median meshgrid mgrid min minimum mod modf moveaxis multiply nan nan_to_num
nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd
nansum nanvar ndarray ndim negative newaxis nextafter nonzero not_equal number ogrid ones ones_like outer packbits
pad partition percentile permute_dims pi piecewise place poly polyadd polyder polydiv polyfit polyint polymul polysub
polyval positive pow power prod promote_types ptp put put_along_axis quantile r_ rad2deg radians ravel
ravel_multi_index real reciprocal remainder repeat reshape resize result_type right_shift rint roll rollaxis roots
rot90 round s_ searchsorted select setdiff1d setxor1d shape sign signbit signedinteger sin sinc sinh size sort
sort_complex spacing split sqrt square squeeze stack std subtract sum swapaxes take take_along_axis tan tanh tensordot
tile trace transpose trapezoid tri tril tril_indices tril_indices_from trim_zeros triu triu_indices triu_indices_from
true_divide trunc uint16 uint32 uint8 union1d unique unique_all unique_counts unique_inverse unique_values unpackbits
unravel_index unsignedinteger unstack unwrap vander var vdot vecdot vecmat vectorize vsplit vstack where zeros
zeros_like
"""
)

LINALG = name_set(
    """
cholesky cond cross det diagonal eigh eigvalsh inv lstsq matmul matrix_norm matrix_power matrix_rank matrix_transpose
multi_dot norm outer pinv qr slogdet solve svd svdvals tensordot tensorinv tensorsolve trace vecdot vector_norm
"""
)

NN = name_set(
    """
celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log1mexp log_sigmoid log_softmax
logmeanexp logsumexp mish one_hot relu relu6 selu sigmoid silu soft_sign softmax softplus sparse_plus sparse_sigmoid
squareplus standardize swish tanh
"""
)

LAX = name_set(
    """
abs acos acosh add argmax argmin asin asinh associative_scan atan atan2 atanh batch_matmul bitcast_convert_type
bitwise_and bitwise_not bitwise_or bitwise_xor broadcast broadcast_in_dim broadcast_shapes broadcasted_iota cbrt ceil
clamp clz collapse concatenate cond conv convert_element_type cos cosh cumlogsumexp cummax cummin cumprod cumsum
digamma div dot dot_general dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_update_index_in_dim
dynamic_update_slice dynamic_update_slice_in_dim eq erf erf_inv erfc exp exp2 expand_dims expm1 floor fori_loop full
full_like ge gt index_in_dim index_take integer_pow iota is_finite le lgamma log log1p logistic lt map max min mul ne
neg nextafter pad population_count pow reciprocal reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum
reduce_xor rem reshape rev round rsqrt scan select select_n shift_left shift_right_arithmetic shift_right_logical sign
sin sinh slice slice_in_dim sort sort_key_val split sqrt square squeeze stop_gradient sub switch tan tanh top_k
transpose while_loop
"""
)

KEYWORDS = {
    "jit": name_set("static_argnums static_argnames inline keep_unused"),
    "vmap": name_set("in_axes out_axes axis_size"),
    "grad": name_set("argnums has_aux"),
    "value_and_grad": name_set("argnums has_aux"),
}
"""Allowed keywords of the transformations of `jax`. Others write files (`compiler_options`), take a caller's arrays
away (`donate_argnums`) or name devices."""

API = {"jax": JAX, "jax.numpy": NUMPY, "jax.numpy.linalg": LINALG, "jax.nn": NN, "jax.lax": LAX}

BUILTINS = name_set(
    """
abs all any bool dict divmod enumerate filter float int isinstance len list map max min pow range reversed round set
slice sorted str sum tuple zip
"""
)

ATTRIBUTES = name_set(
    """
shape ndim size dtype T mT at set get add subtract multiply divide power min max mul astype sum mean std var
prod cumsum cumprod all any argmax argmin argsort sort clip round reshape ravel flatten squeeze transpose swapaxes
take repeat dot diagonal trace ptp nonzero conj real imag copy item tolist append extend insert pop update items keys
values index count eps tiny bits
"""
)
"""Attributes of arrays, lists, dictionaries and tuples; a state's fields come on top."""

NOT_NUMERIC = {
    "load": "files are out of reach",
    "save": "files are out of reach",
    "savez": "files are out of reach",
    "fromfile": "files are out of reach",
    "float64": "programs are 32 bit: use jnp.float32",
    "int64": "programs are 32 bit: use jnp.int32",
    "uint64": "programs are 32 bit: use jnp.uint32",
    "double": "programs are 32 bit: use jnp.float32",
    "complex64": "complex numbers are not supported",
    "complex128": "complex numbers are not supported",
    "random": "programs are deterministic: no random numbers",
    "empty": "its values are undefined: use jnp.zeros",
    "empty_like": "its values are undefined: use jnp.zeros_like",
    "debug": "programs have no side effects",
    "tree_util": "write the leaves out by name",
    "tree": "write the leaves out by name",
    "experimental": "only the stable API is available",
    "bool": "use jnp.bool_ or bool",
    "float": "use jnp.float32",
    "int": "use jnp.int32",
}
"""Why a tempting name of JAX is missing."""
