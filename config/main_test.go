package config

import (
	"errors"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// load reads text as sidecar.yaml, without an environment.
func load(t *testing.T, text string) *Loaded {
	t.Helper()
	loaded, err := Load(Source{Path: "sidecar.yaml", Bytes: []byte(text)})
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return loaded
}

// refusal loads a configuration that must be refused, and returns the sentences.
func refusalOf(t *testing.T, src Source) string {
	t.Helper()
	if src.Path == "" {
		src.Path = "sidecar.yaml"
	}
	_, err := Load(src)
	if err == nil {
		t.Fatalf("accepted:\n%s", src.Bytes)
	}
	if problems := (Problems)(nil); !errors.As(err, &problems) {
		t.Fatalf("%T: %v", err, err)
	}
	return err.Error()
}
