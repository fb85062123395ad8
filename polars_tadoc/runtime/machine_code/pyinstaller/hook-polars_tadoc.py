"""PyInstaller's hook: machine code, the sources that its keys are made of, CUDA sources, modules imported by name."""

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

datas = collect_data_files("polars_tadoc")
hiddenimports = collect_submodules("polars_tadoc", filter=lambda name: ".pyinstaller" not in name, on_error="ignore")
module_collection_mode = "pyz+py"
