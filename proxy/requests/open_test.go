package requests

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, o Options) *Keeper {
	t.Helper()
	k, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return k
}

func TestAKeeperIsOpenedOnWhatIsSet(t *testing.T) {
	keys := keyLine("k1", 1)
	for name, options := range map[string]func(t *testing.T) Options{
		"etcd alone": func(*testing.T) Options { return Options{Inline: 1 << 20} },
		"folder": func(t *testing.T) Options {
			return Options{Dir: filepath.Join(t.TempDir(), "requests"), Keys: keys}
		},
		"bucket": func(t *testing.T) Options {
			s3 := s3Options(s3Server(t))
			return Options{S3: &s3, Keys: keys}
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			k := open(t, o)
			value := keep(t, k, execution(1), aRequest())
			if got, err := k.Fetch(t.Context(), execution(1), value); err != nil ||
				!reflect.DeepEqual(got, aRequest()) {
				t.Error(err)
			}
			if inline := o.Inline > 0; (k.Sweeper(nil, time.Now) == nil) != inline {
				t.Errorf("there is something to sweep: %v", inline)
			}
		})
	}
}

func TestWhatIsSetWronglyIsNotOpened(t *testing.T) {
	for want, o := range map[string]Options{
		"choose one":              {Dir: "x", S3: &S3Options{}},
		"key_file, line 1":        {Keys: "x"},
		"s3.endpoint":             {S3: &S3Options{}},
		"park_store.dir is to be": {Dir: filepath.Join(t.TempDir(), "not", "there")},
	} {
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestAReloadTakesOverKeysAndABadOneChangesNothing(t *testing.T) {
	s3 := s3Options(s3Server(t))
	o := Options{S3: &s3, Keys: keyLine("k1", 1)}
	k := open(t, o)
	old := keep(t, k, execution(1), aRequest())
	if err := k.Reload(Options{S3: &S3Options{}, Keys: "nonsense"}); err == nil {
		t.Error("nonsense was taken over")
	}
	if _, err := k.Fetch(t.Context(), execution(1), old); err != nil {
		t.Error(err)
	}
	wrong := s3
	wrong.SecretKey = "another"
	if err := k.Reload(Options{S3: &wrong, Keys: keyLine("k2", 2) + keyLine("k1", 1)}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Fetch(t.Context(), execution(1), old); err == nil ||
		!strings.Contains(err.Error(), "does not know these keys") {
		t.Errorf("with another secret: %v", err)
	}
	o.Keys = keyLine("k2", 2)
	if err := k.Reload(o); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Fetch(t.Context(), execution(1), old); err == nil ||
		!strings.Contains(err.Error(), "put the old key back") {
		t.Errorf("without the old key: %v", err)
	}
}
