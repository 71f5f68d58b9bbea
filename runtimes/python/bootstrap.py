"""Entry point: python3 [-S] /var/runtime/bootstrap.py. A module keeps its compiled form, which a script cannot."""

import kiln_runtime

if __name__ == "__main__":  # not in a child that multiprocessing spawns
    kiln_runtime.main()
