package senders

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// startRTMP starts an nginx at addr that asks url whether a viewer may watch.
func startRTMP(t *testing.T, addr, url string) *testkit.Process {
	t.Helper()
	const module = "/usr/lib/nginx/modules/ngx_rtmp_module.so"
	if _, err := os.Stat(module); err != nil {
		t.Skipf("nginx-rtmp is not installed, so it is not tested: %v", err)
	}
	dir := t.TempDir()
	config := write(t, "nginx.conf", fmt.Sprintf(`
load_module %s;
daemon off;
master_process off;
pid %s;
events {}
rtmp { server { listen %s; application live { live on; on_play %s; } } }
`, module, filepath.Join(dir, "pid"), addr, url))
	p := testkit.Start(t, testkit.Command{Program: testkit.Program(t, "nginx"),
		Args: []string{"-p", dir, "-e", "stderr", "-c", config}})
	await(t, p, addr)
	return p
}

// watch lets a viewer ask for the stream at addr; in waits until it is let in or cut off.
func watch(t *testing.T, addr string) (in func() bool) {
	t.Helper()
	viewer := testkit.Start(t, testkit.Command{Program: testkit.Program(t, "rtmpdump"),
		Args: []string{"--live", "-V", "-r", "rtmp://" + addr + "/live/film", "-o",
			filepath.Join(t.TempDir(), "film")}})
	return func() bool {
		let := false
		testkit.Until(t, "the viewer is let in or cut off", func() bool {
			select {
			case <-viewer.Done():
				return true
			default:
				let = strings.Contains(viewer.Stderr.String(), "NetStream.Play.Start")
				return let
			}
		})
		return let
	}
}

// Two viewers of a stream are asked for at once. An answer counts for one alone: after a restart
// nginx counts its viewers from 1 again, so that what it sends is the same, and the service may
// have changed its mind.
func TestTheServiceIsAskedForEachViewer(t *testing.T) {
	answers := make(chan string, 2)
	service := testkit.NewUpstream(t, func(r *testkit.Received) string {
		select {
		case <-r.Context.Done():
			return ""
		case answer := <-answers:
			return answer
		}
	})
	_, url := front(t, "self-hosted", "rtmp", service)
	addr := testkit.FreePort(t)
	nginx := startRTMP(t, addr, url)
	first, second := watch(t, addr), watch(t, addr)
	service.AwaitReceived(t, "", 2) // both wait for an answer
	answers <- testkit.OK("")
	answers <- testkit.OK("")
	if !first() || !second() {
		t.Error("a viewer that the service lets in was cut off")
	}
	nginx.Kill()
	startRTMP(t, addr, url)
	answers <- testkit.Reply(403, "")
	third := watch(t, addr)
	if third() {
		t.Error("a viewer that the service refuses was let in")
	}
	asked := service.AwaitReceived(t, "", 3)
	if len(asked) != 3 || asked[2].Body != asked[0].Body && asked[2].Body != asked[1].Body {
		t.Errorf("the service was asked %d times; after the restart with %s", len(asked), asked[2].Body)
	}
}
