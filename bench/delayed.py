"""Shows a folder as a FUSE file system on which each read that returns data takes longer: `delayed.py FOLDER MOUNT SECONDS`. The kernel caches
nothing, and passes reads on in requests of at most 128 KiB. Needs fusepy and libfuse 2. Ends when MOUNT is unmounted.
"""

import os
import sys
import time

from fuse import FUSE, FuseOSError, Operations


class Delayed(Operations):
    """The files of a folder, with a wait before each read."""

    def __init__(self, folder, delay_s):
        self.folder, self.delay_s = folder, delay_s

    def _path(self, path):
        return self.folder + path

    def getattr(self, path, fh=None):
        try:
            found = os.lstat(self._path(path))
        except OSError as error:
            raise FuseOSError(error.errno) from error
        names = ("st_mode", "st_ino", "st_nlink", "st_uid", "st_gid", "st_size", "st_atime", "st_mtime", "st_ctime")
        return {name: getattr(found, name) for name in names}

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(self._path(path))]

    def open(self, path, flags):
        try:
            return os.open(self._path(path), flags)
        except OSError as error:
            raise FuseOSError(error.errno) from error

    def read(self, path, size, offset, fh):
        data = os.pread(fh, size, offset)
        # File systems know where a file ends without a request.
        if data:
            time.sleep(self.delay_s)
        return data

    def release(self, path, fh):
        os.close(fh)


def main():
    folder, mount, delay_s = sys.argv[1:]
    FUSE(Delayed(folder, float(delay_s)), mount, foreground=True, direct_io=True)


if __name__ == "__main__":
    main()
