package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
)

// maxSecret bounds a secret's file; a longer one is most likely the wrong file.
const maxSecret = 64 << 10

// environmentByName returns environ by name.
func environmentByName(environ []string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, entry := range environ {
		if name, value, found := strings.Cut(entry, "="); found {
			env[name] = value
		}
	}
	return env
}

// secretReader reads the files and variables that a configuration names.
type secretReader struct {
	env      map[string]string
	required bool // a missing one is a problem, not a warning
	problems Problems
	warnings Problems
}

func (s *secretReader) reportMissing(path, format string, args ...any) {
	p := Problem{Path: path, Text: fmt.Sprintf(format, args...)}
	if s.required {
		s.problems = append(s.problems, p)
	} else {
		s.warnings = append(s.warnings, p)
	}
}

// fillSecrets reads the secrets of every group below k into v, the struct that k describes.
func (s *secretReader) fillSecrets(k *key, path string, v reflect.Value) {
	for _, secret := range k.secrets {
		s.fillOne(k, path, secret, v)
	}
	for _, child := range k.keys {
		switch child.kind {
		case kindGroup:
			s.fillSecrets(child, joinPath(path, child.name), v.Field(child.index))
		case kindItems:
			for i := range v.Field(child.index).Len() {
				s.fillSecrets(child, indexedPath(joinPath(path, child.name), i), v.Field(child.index).Index(i))
			}
		}
	}
}

// fillOne reads one secret: into a Secret, or into as many as were named, in their order.
func (s *secretReader) fillOne(k *key, path string, secret secretKey, v reflect.Value) {
	places := s.secretPlaces(k, path, secret.name, v)
	field := v.Field(secret.index)
	if _, single := reflect.TypeAssert[Secret](field); single {
		for _, p := range places {
			text, _ := s.readSecret(p)
			if secret.name != sealingKeys {
				s.warnOfOddText(p.path, text)
			}
			field.Set(reflect.ValueOf(newSecret(text)))
		}
		return
	}
	var all []Secret
	for _, p := range places {
		if text, ok := s.readSecret(p); ok {
			if secret.name != publicKey {
				s.warnOfOddText(p.path, text)
				s.warnOfForeignKey(p.path, text)
			}
			all = append(all, newSecret(text))
		}
	}
	field.Set(reflect.ValueOf(all))
}

// secretPlace is the location of one secret: a file, or a variable.
type secretPlace struct{ path, file, variable string }

// secretPlaces lists the locations of the secret called name, by the settings <name>_file,
// <name>_env and <name>_files inside of k. Only one of them may be given.
func (s *secretReader) secretPlaces(k *key, path, name string, v reflect.Value) []secretPlace {
	var places []secretPlace
	var given, known []string
	for _, setting := range k.placesOf(name) {
		known = append(known, setting.name)
		at, field := joinPath(path, setting.name), v.Field(setting.index)
		before := len(places)
		switch {
		case setting.kind == kindTexts:
			for i := range field.Len() {
				places = append(places, secretPlace{path: indexedPath(at, i), file: field.Index(i).String()})
			}
		case field.String() == "":
		case strings.HasSuffix(setting.name, "_env"):
			places = append(places, secretPlace{path: at, variable: field.String()})
		default:
			places = append(places, secretPlace{path: at, file: field.String()})
		}
		if len(places) > before {
			given = append(given, at)
		}
	}
	if len(given) > 1 {
		s.problems = append(s.problems, Problem{Path: given[0], Text: "give either " + strings.Join(known, " or ")})
		return nil
	}
	return places
}

// readSecret returns the secret at p, and whether it was found.
func (s *secretReader) readSecret(p secretPlace) (string, bool) {
	text, found := s.env[p.variable]
	if p.variable != "" && !found {
		s.reportMissing(p.path, "%s", s.noVariable(p.variable))
		return "", false
	}
	if p.variable == "" {
		var err error
		if text, err = readSecret(p.file); err != nil {
			s.reportMissing(p.path, "%s", WithoutSecret(p.file, err))
			return "", false
		}
	}
	text = cutNewline(text)
	if isBlank(text) {
		s.problems = append(s.problems, Problem{Path: p.path, Text: "the secret is empty"})
	}
	return text, true
}

// noVariable says that there is no variable called name, which may be a secret that was written in
// its place.
func (s *secretReader) noVariable(name string) string {
	if isVariable(name) {
		return "there is no environment variable " + name
	}
	alone, _, assigned := strings.Cut(name, "=")
	alone = strings.Trim(alone, "${}")
	if _, found := s.env[alone]; (found || assigned) && isVariable(alone) {
		return "write the name alone: " + alone
	}
	return "needs the name of a variable of the environment, such as STRIPE_SECRET; what stands here is not shown, " +
		"because it may be the secret itself"
}

// isBlank reports whether text is what editors write into an empty file: a byte order mark, of
// UTF-8 or UTF-16, and line ends.
func isBlank(text string) bool {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		text = strings.TrimPrefix(text, mark)
	}
	return strings.Trim(text, "\ufeff\x00\r\n") == ""
}

// publicKey is the name of the secret that is not secret, and whose encoding defines its layout.
const publicKey = "public_key"

// sealingKeys is the name of the secret that has a line for each key, and whose lines are checked
// elsewhere.
const sealingKeys = "key"

// warnOfOddText warns about text that is hardly meant in a secret: it would be used byte for byte,
// and everything refused.
func (s *secretReader) warnOfOddText(path, text string) {
	inside := strings.Trim(text, " \t\r\n")
	quoted := len(inside) >= 2 && (inside[0] == '"' || inside[0] == '\'') && inside[len(inside)-1] == inside[0]
	for _, o := range []struct {
		is   bool
		what string
	}{
		{strings.HasPrefix(text, "\ufeff"), "begins with a byte order mark, as some editors write it"},
		{strings.ContainsRune(text, 0), "has a NUL byte; it may be UTF-16"},
		{strings.ContainsAny(text, "\r\n"), "has a line break beside the one at its end that is cut"},
		{text != strings.Trim(text, " \t"), "has spaces around it"},
		{quoted, "stands in quotes"},
		{assignment.MatchString(text), "has the name of a variable before it, as in NAME=value"},
	} {
		if o.is {
			s.warnings = append(s.warnings, Problem{Path: path, Text: "the secret " + o.what + ", and is taken byte " +
				"for byte, so it will probably match nothing; write only the secret into the file"})
			return
		}
	}
}

// assignment is a line of a file of variables, and not the = at the end of base64.
var assignment = regexp.MustCompile(`^(?:export +)?[A-Z][A-Z0-9_]*=[^=]`)

// apiKeys begin keys with which a sender's API is called, by what signs its webhooks instead.
var apiKeys = map[string]string{
	"sk_live_": "Stripe's signing secret of an endpoint begins with whsec_",
	"sk_test_": "Stripe's signing secret of an endpoint begins with whsec_",
	"rk_live_": "Stripe's signing secret of an endpoint begins with whsec_",
	"rk_test_": "Stripe's signing secret of an endpoint begins with whsec_",
	"xoxb-":    "Slack's is the signing secret of the app",
	"xoxp-":    "Slack's is the signing secret of the app",
	"shpat_":   "Shopify's is the secret of the app, or of the webhooks of the shop",
	"ghp_":     "GitHub's is the secret of the webhook",
	"glpat-":   "GitLab's is the secret token of the webhook",
	"SG.":      "SendGrid's is the verification key of the event webhook",
}

// warnOfForeignKey warns about a key of the sender's API in place of what signs its webhooks.
func (s *secretReader) warnOfForeignKey(path, text string) {
	for _, prefix := range sortedKeys(apiKeys) {
		if strings.HasPrefix(text, prefix) {
			s.warnings = append(s.warnings, Problem{Path: path, Text: fmt.Sprintf("the secret begins with %s, as a "+
				"key of the sender's API does; %s. Every delivery would be 401", prefix, apiKeys[prefix])})
		}
	}
}

func readSecret(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", err
	}
	if len(content) > maxSecret {
		return "", fmt.Errorf("%s is longer than %d KiB; is it the right file?", name, maxSecret>>10)
	}
	return string(content), nil
}

// cutNewline removes the one newline that editors and echo leave at the end.
func cutNewline(s string) string {
	return strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r")
}

// checkReadable checks that the certificate files can be read. Their users check the content.
func (s *secretReader) checkReadable(c *Config) {
	for _, file := range certificateFiles(c) {
		if file.name == "" {
			continue
		}
		if err := tryRead(file.name); err != nil {
			s.reportMissing(file.path, "%s", WithoutSecret(file.name, err))
		}
	}
}

func tryRead(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return errors.New(name + " is a folder")
	}
	return nil
}

type namedFile struct{ path, name string }

func certificateFiles(c *Config) []namedFile {
	files := []namedFile{
		{"listen.tls.cert_file", c.Listen.TLS.CertFile},
		{"listen.tls.key_file", c.Listen.TLS.KeyFile},
		{"admin.tls.cert_file", c.Admin.TLS.CertFile},
		{"admin.tls.key_file", c.Admin.TLS.KeyFile},
		{"admin.tls.client_ca_file", c.Admin.TLS.ClientCAFile},
	}
	for _, client := range []struct {
		path string
		tls  ClientTLS
	}{{"upstream.tls", c.Upstream.TLS}, {"etcd.tls", c.Etcd.TLS}, {"park_store.s3.tls", c.ParkStore.S3.TLS}} {
		files = append(files,
			namedFile{client.path + ".ca_file", client.tls.CAFile},
			namedFile{client.path + ".cert_file", client.tls.CertFile},
			namedFile{client.path + ".key_file", client.tls.KeyFile})
	}
	return files
}
