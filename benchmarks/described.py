"""Devices that need not be there: XLA's compilers take a description of one, and compile for it.

The compilers are in JAX's plugin for CUDA and in libtpu; nothing compiled this way can run.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any

from jaxreward.errors import UserError

_INSTALL = "pip install 'jaxreward[gpu-compile]'"

_H200 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_core: 233472
  threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535
  block_dim_limit_z: 65535 memory_bandwidth: 4800000000000 l2_cache_size: 62914560 clock_rate_ghz: 1.98
  device_memory_size: 150000000000 shared_memory_per_block_optin: 232448 cuda_compute_capability { major: 9 minor: 0 }
  registers_per_core_limit: 65536 registers_per_block_limit: 65536 driver_version: "13.0.0" runtime_version: "13.0.0"
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 12 patch: 0 }
runtime_version { major: 13 minor: 0 patch: 0 }
device_description_str: "NVIDIA H200"
"""


@dataclass(frozen=True)
class Described:
    """A device by its data sheet.

    Attributes:
        bandwidth: of its memory, bytes a second.
        flops: of float32 a second: on the H200 outside its tensor cores, on the v5e a sixth of its bfloat16 products,
            by which XLA makes up one of float32.
        launch_us: microseconds from one kernel of a program to the next, where each has little to do; assumed.
    """

    title: str
    platform: str
    bandwidth: float
    flops: float
    launch_us: float

    def device(self) -> Any:
        """The device, for the shardings of the shapes that a function is lowered with."""
        import jax
        from jax.experimental import topologies

        jax.devices()  # finds plugins
        if self.platform == "tpu":
            return topologies.get_topology_desc(topology_name="v5e:2x2", platform="tpu").devices[0]
        description = {"target_config": _H200, "topology": "1x1x1"}
        return topologies.get_topology_desc(topology_name="", platform="cuda", **description).devices[0]


DEVICES = {
    "h200": Described("NVIDIA H200", "gpu", 4.8e12, 67e12, 3.0),
    "v5e": Described("TPU v5e", "tpu", 819e9, 197e12 / 6, 1.0),
}


def environment(name: str, cuda_site: Path | None = None, libtpu: Path | None = None) -> dict[str, str]:
    """The environment of a process that compiles for the device called `name`.

    Args:
        cuda_site: folder with the CUDA plugin and NVIDIA's wheels; by default they are installed.
        libtpu: the library, or a folder with its wheel; likewise.

    Raises:
        UserError: a compiler that is not there, or a plugin of another version than JAX.
    """
    common = {
        "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false", "TF_CPP_MIN_LOG_LEVEL": "3",
    }  # fmt: skip
    return dict(os.environ) | common | (_cuda(cuda_site) if name == "h200" else _tpu(libtpu))


def _cuda(site: Path | None) -> dict[str, str]:
    said = f"give --cuda-site DIR or {_INSTALL}"
    if site is None:
        found = util.find_spec("nvidia")
        folders = [Path(folder) / "cu13" for folder in (found.submodule_search_locations or ())] if found else []
        version = _version("jax-cuda13-plugin")
    else:
        folders = [site / "nvidia" / "cu13"]
        version = _version("jax-cuda13-plugin", [str(site)])
    toolkit = next((folder for folder in folders if (folder / "nvvm").is_dir()), None)
    if version is None or toolkit is None:
        raise UserError(f"there is no CUDA plugin with its toolkit {'here' if site is None else f'in {site}'}: {said}")
    if version != (own := metadata.version("jax")):
        raise UserError(f"the CUDA plugin is of version {version} and JAX of {own}: install jax-cuda13-plugin=={own}")
    # Tuning by trial needs the device, and for some products Triton has no plan but by trial: they are left to cuBLAS.
    flags = f"--xla_gpu_cuda_data_dir={toolkit} --xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false"
    return {
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip(),
        "PATH": f"{toolkit / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
        "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
        **_python_path(site),
    }


def _tpu(library: Path | None) -> dict[str, str]:
    if library is None:
        found = util.find_spec("libtpu")
        folders = list(found.submodule_search_locations or ()) if found else []
        paths = [Path(folder) / "libtpu.so" for folder in folders]
    else:
        paths = [library, library / "libtpu.so", library / "libtpu" / "libtpu.so"]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        where = "here" if library is None else f"in {library}"
        raise UserError(f"there is no libtpu.so {where}: give --libtpu DIR or {_INSTALL}")
    return {
        "TPU_LIBRARY_PATH": str(path), "TPU_SKIP_MDS_QUERY": "1", "TPU_ACCELERATOR_TYPE": "v5litepod-4",
        "TPU_TOPOLOGY": "2x2", "TPU_WORKER_HOSTNAMES": "localhost", "TPU_STDERR_LOG_LEVEL": "3",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    }  # fmt: skip


def _version(package: str, path: list[str] | None = None) -> str | None:
    """The version of a package, in the folders of `path` if they are given."""
    found = metadata.distributions(name=package) if path is None else metadata.distributions(name=package, path=path)
    return next((d.version for d in found), None)


def _python_path(site: Path | None) -> dict[str, str]:
    if site is None:
        return {}
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(site.resolve()), os.environ.get("PYTHONPATH", ""))))}
