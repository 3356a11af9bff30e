package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// notifyFile is a configuration whose receiver is in a file.
func notifyFile(t *testing.T, url, rest string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "slack.url")
	if err := os.WriteFile(file, []byte(url+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "routes: [{name: stripe, path: /a}]\nnotify: {url_file: " + file + rest + "}\n"
}

func TestMessagesGoToTheURLInAFileAndItIsNeverShown(t *testing.T) {
	const url = "https://hooks.example.com/services/T0/B0/Xy7Secret9"
	loaded, err := Load(Source{Bytes: []byte(notifyFile(t, url, "")), NeedFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := loaded.Config.Notify.URL.Reveal(); got != url {
		t.Errorf("URL %q", got)
	}
	var shown strings.Builder
	if err := loaded.Show(&shown, true); err != nil || strings.Contains(shown.String(), "Xy7Secret9") ||
		!strings.Contains(shown.String(), "every: 1h") {
		t.Errorf("%v\n%s", err, shown.String())
	}
}

func TestAReceiverThatIsNotUsableIsSaidWithoutItsURL(t *testing.T) {
	for _, c := range []struct{ url, rest, want string }{
		{"hooks.example.com/Xy7Secret9", "", "notify.url_file: the text in it is no URL"},
		{"https://hooks.example.com/\nXy7Secret9", "", "notify.url_file: the text in it is no URL"},
		{"https://hooks.example.com/Xy7Secret9", ", every: 30s",
			"notify.every: 30s is out of bounds; choose at least 1m, or 0s"},
		{"https://hooks.example.com/Xy7Secret9", ", routes: [strip]",
			`notify.routes[0]: "strip" is no route of this file; did you mean stripe?`},
		{"https://hooks.example.com/Xy7Secret9", ", url_env: HOOK", "give either url_file or url_env"},
	} {
		_, err := Load(Source{Bytes: []byte(notifyFile(t, c.url, c.rest)), NeedFiles: true})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "Xy7Secret9") {
			t.Errorf("%s%s: %v", c.url, c.rest, err)
		}
	}
}

func TestAReceiverWrittenInPlaceOfItsFileIsNotShown(t *testing.T) {
	for _, text := range []string{"notify: {url: 'https://hooks.example.com/services/T0/B0/Xy7Secret9abcdefg0'}",
		"notify: {url_file: 'https://hooks.example.com/services/T0/B0/Xy7Secret9abcdefg0'}",
		"notify: 'https://hooks.example.com/services/T0/B0/Xy7Secret9abcdefg0'"} {
		_, err := Load(Source{Bytes: []byte(text), NeedFiles: true})
		if err == nil || strings.Contains(err.Error(), "Xy7Secret9") {
			t.Errorf("%s: %v", text, err)
		}
		t.Log(err)
	}
}

func TestWarningsAboutMessages(t *testing.T) {
	for text, want := range map[string]string{
		"notify: {every: 2h}":                           "has no effect: it has no url_file",
		notifyFile(t, "http://hooks.example.com/x", ""): "use https://",
		notifyFile(t, "http://127.0.0.1/x", ""):         "",
	} {
		loaded, err := Load(Source{Bytes: []byte(text), NeedFiles: true})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, w := range loaded.Warnings {
			if strings.HasPrefix(w.Path, "notify") {
				got += w.Text
			}
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q", text, got)
		}
	}
}
