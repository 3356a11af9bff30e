package requests

import (
	"context"
	"errors"
	"time"
)

// Options say where requests are stored. The zero value stores none.
type Options struct {
	// Inline is the maximum size of one encoded request in the ledger's value. 0: none.
	Inline int
	// Dir is the folder of longer ones. Empty: there is none.
	Dir string
	// S3 is the bucket of longer ones; nil: there is none. Not beside Dir.
	S3 *S3Options
	// Keys is the text of a key file. Empty: nothing is sealed.
	Keys string
}

// Open makes a Keeper with the store that o names. Close it.
func Open(o Options) (*Keeper, error) {
	keys, err := keysIn(o.Keys)
	if err != nil {
		return nil, err
	}
	switch {
	case o.Dir != "" && o.S3 != nil:
		return nil, errors.New("park_store: dir and s3 are both set; choose one")
	case o.Dir != "":
		d, err := OpenDir(o.Dir)
		if err != nil {
			return nil, err
		}
		return NewKeeper(o.Inline, InDir, d, keys), nil
	case o.S3 != nil:
		s, err := NewS3(*o.S3)
		if err != nil {
			return nil, err
		}
		return NewKeeper(o.Inline, InS3, s, keys), nil
	}
	return NewKeeper(o.Inline, Nowhere, nil, keys), nil
}

// Reload replaces the keys by those of o: those that seal, and those of S3. It ignores the rest of
// o. An error changes nothing.
func (k *Keeper) Reload(o Options) error {
	keys, err := keysIn(o.Keys)
	if err != nil {
		return err
	}
	if s, ok := k.store.(*S3); ok && o.S3 != nil {
		if err := s.SetCredentials(o.S3.AccessKey, o.S3.SecretKey); err != nil {
			return err
		}
	}
	k.SetKeys(keys)
	return nil
}

// Sweeper returns a sweeper of the store of k; nil if there is none.
func (k *Keeper) Sweeper(known Known, clock func() time.Time) *Sweeper {
	if k.store == nil {
		return nil
	}
	return NewSweeper(k.store, known, clock)
}

// Close closes the store. It waits for a disk that hangs until ctx ends. Nothing may be kept or
// fetched afterwards.
func (k *Keeper) Close(ctx context.Context) error {
	if c, ok := k.store.(interface {
		Close(ctx context.Context) error
	}); ok {
		return c.Close(ctx)
	}
	return nil
}

func keysIn(text string) (*Keys, error) {
	if text == "" {
		return nil, nil
	}
	return ParseKeys(text)
}
