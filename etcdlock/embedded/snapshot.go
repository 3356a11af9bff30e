package embedded

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Snapshot returns a consistent copy of the database as of now, in the format of etcd's own
// snapshots, which etcdutl reads, too. Until it is closed the database is not defragmented, and
// grows with what is written meanwhile, so read it swiftly. It ends with ctx.
func (s *Server) Snapshot(ctx context.Context) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	s.tidier.copying.RLock()
	done := sync.OnceFunc(func() { cancel(); s.tidier.copying.RUnlock() })
	r, err := s.client.Snapshot(ctx)
	if err != nil {
		done()
		return nil, fmt.Errorf("copy the embedded etcd: %w", err)
	}
	return &copied{r, done}, nil
}

// copied is a snapshot being read.
type copied struct {
	io.ReadCloser
	done func()
}

// Close ends the snapshot.
func (c *copied) Close() error {
	defer c.done()
	return c.ReadCloser.Close()
}

// Save writes a snapshot into file, with mode 0600. An existing file is replaced when the new one
// is whole and safe on disk, not before.
func Save(file string, fill func(io.Writer) error) (size int64, err error) {
	part, err := os.OpenFile(file+".part", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return 0, fmt.Errorf("write the backup: %w", err)
	}
	defer func() {
		if err != nil {
			_ = part.Close()
			_ = os.Remove(part.Name())
		}
	}()
	if err := fill(part); err != nil {
		return 0, err
	}
	if size, err = verifyChecksum(part); err != nil {
		return 0, err
	}
	if err := errors.Join(part.Sync(), part.Close(), os.Rename(part.Name(), file)); err != nil {
		return 0, fmt.Errorf("write the backup: %w", err)
	}
	return size, nil
}

// verifyChecksum compares a snapshot with the checksum at its end.
func verifyChecksum(f *os.File) (size int64, err error) {
	size, err = f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, fmt.Errorf("read the backup: %w", err)
	}
	want := make([]byte, sha256.Size)
	if size%512 != sha256.Size {
		return 0, errors.New("the backup is cut off: its checksum is missing; make another one")
	}
	if _, err := f.ReadAt(want, size-sha256.Size); err != nil {
		return 0, fmt.Errorf("read the backup: %w", err)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, size-sha256.Size)); err != nil {
		return 0, fmt.Errorf("read the backup: %w", err)
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return 0, errors.New("the backup is damaged: its checksum is another one; make another one")
	}
	return size, nil
}
