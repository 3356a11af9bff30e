package kit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TraefikVersion is the release that is built. 3.7 does not build from its module alone.
const TraefikVersion = "v3.6.12"

// Traefik is the path of the program that BuildTraefik has left. Building takes some minutes of
// CPU, so a test that finds none is skipped.
func Traefik(t testing.TB) string {
	t.Helper()
	return prepared(t, traefikProgram, "Traefik is not built: nothing goes through it (make test-fronts builds it: "+
		"some minutes, the first time)")
}

const traefikProgram = "traefik-" + TraefikVersion

// BuildTraefik builds Traefik from its Go module into the user's cache, unless it is there, and
// returns its path. The DNS providers for ACME are left out: they need the libraries of a hundred
// clouds, and no test asks for a certificate. Progress goes to out.
func BuildTraefik(out io.Writer) (string, error) {
	path, err := prepare(traefikProgram)
	if err != nil {
		return "", err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil { // another one may be building it
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), "traefik-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := traefikSource(dir); err != nil {
		return "", fmt.Errorf("source of Traefik: %w", err)
	}
	fmt.Fprintln(out, "building Traefik", TraefikVersion, "once: some minutes")
	program := filepath.Join(dir, "traefik-program")
	args := []string{"go", "build", "-p", "1", "-trimpath", "-ldflags", "-s -w", "-o", program, "./cmd/traefik"}
	if nice, err := exec.LookPath("nice"); err == nil {
		args = append([]string{nice, "-n", "19"}, args...)
	}
	build := exec.Command(args[0], args[1:]...)
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/traefik: %w\n%s", err, said)
	}
	return path, os.Rename(program, path)
}

// noDNS stands in the place of the package with the DNS providers.
const noDNS = `package nodns

import (
	"errors"

	"github.com/go-acme/lego/v4/challenge"
)

func NewDNSChallengeProviderByName(name string) (challenge.Provider, error) {
	return nil, errors.New("built without DNS providers: " + name)
}
`

// traefikSource copies the module to dir, with noDNS in it.
func traefikSource(dir string) error {
	download := exec.Command("go", "mod", "download", "-json", "github.com/traefik/traefik/v3@"+TraefikVersion)
	download.Dir = dir // outside of this module, whose go.sum is left alone
	said, runErr := download.Output()
	var module struct{ Dir, Error string }
	if err := json.Unmarshal(said, &module); err != nil || module.Dir == "" {
		return errors.Join(runErr, errors.New("it cannot be fetched: "+module.Error))
	}
	if err := os.CopyFS(dir, os.DirFS(module.Dir)); err != nil {
		return err
	}
	provider := filepath.Join(dir, "pkg/provider/acme/provider.go")
	text, err := os.ReadFile(provider)
	if err != nil {
		return err
	}
	const all, none = `"github.com/go-acme/lego/v4/providers/dns"`,
		`dns "github.com/traefik/traefik/v3/pkg/provider/acme/nodns"`
	if n := strings.Count(string(text), all); n != 1 {
		return fmt.Errorf("it imports the DNS providers %d times", n)
	}
	if err := os.Remove(provider); err != nil { // the copy of a file of the module cache may be read-only
		return err
	}
	stand := filepath.Join(filepath.Dir(provider), "nodns")
	return errors.Join(os.WriteFile(provider, bytes.Replace(text, []byte(all), []byte(none), 1), 0o600),
		os.MkdirAll(stand, 0o755), os.WriteFile(filepath.Join(stand, "nodns.go"), []byte(noDNS), 0o600))
}
