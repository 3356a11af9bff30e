package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
)

// maxSecret bounds a secret's file; a longer one is most likely the wrong file.
const maxSecret = 64 << 10

// environment is environ by name.
func environment(environ []string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, entry := range environ {
		if name, value, found := strings.Cut(entry, "="); found {
			env[name] = value
		}
	}
	return env
}

// secretReader reads what a configuration names outside of itself.
type secretReader struct {
	env      map[string]string
	required bool // what is missing is a problem, not a warning
	problems Problems
	warnings Problems
}

func (s *secretReader) missing(path, format string, args ...any) {
	p := Problem{Path: path, Text: fmt.Sprintf(format, args...)}
	if s.required {
		s.problems = append(s.problems, p)
	} else {
		s.warnings = append(s.warnings, p)
	}
}

// fill reads the secrets of every group below k into v, the struct that k describes.
func (s *secretReader) fill(k *key, path string, v reflect.Value) {
	for _, secret := range k.secrets {
		text := s.secret(k, path, secret.name, v)
		v.Field(secret.index).Set(reflect.ValueOf(NewSecret(text)))
	}
	for _, child := range k.keys {
		switch child.kind {
		case kindGroup:
			s.fill(child, join(path, child.name), v.Field(child.index))
		case kindRoutes:
			for i := range v.Field(child.index).Len() {
				s.fill(child, indexed(join(path, child.name), i), v.Field(child.index).Index(i))
			}
		}
	}
}

func (s *secretReader) secret(k *key, path, name string, v reflect.Value) string {
	fileKey, _ := k.child(name + "_file")
	envKey, _ := k.child(name + "_env")
	file, variable := v.Field(fileKey.index).String(), v.Field(envKey.index).String()
	filePath, envPath := join(path, name+"_file"), join(path, name+"_env")
	var text string
	switch {
	case file == "" && variable == "":
		return ""
	case file != "" && variable != "":
		s.problems = append(s.problems, Problem{Path: filePath, Text: fmt.Sprintf("give either %s_file or %s_env", name, name)})
		return ""
	case variable != "":
		value, found := s.env[variable]
		if !found {
			s.missing(envPath, "there is no environment variable %s", variable)
			return ""
		}
		text, filePath = value, envPath
	default:
		content, err := readSecret(file)
		if err != nil {
			s.missing(filePath, "%s", err)
			return ""
		}
		text = content
	}
	text = cutNewline(text)
	if text == "" {
		s.problems = append(s.problems, Problem{Path: filePath, Text: "the secret is empty"})
	}
	return text
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

// readable checks that the certificate files can be read. Whoever uses them checks what is in them.
func (s *secretReader) readable(c *Config) {
	for _, file := range certificateFiles(c) {
		if file.name == "" {
			continue
		}
		if err := tryRead(file.name); err != nil {
			s.missing(file.path, "%s", err)
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
	}
	for _, client := range []struct {
		path string
		tls  ClientTLS
	}{{"upstream.tls", c.Upstream.TLS}, {"etcd.tls", c.Etcd.TLS}} {
		files = append(files,
			namedFile{client.path + ".ca_file", client.tls.CAFile},
			namedFile{client.path + ".cert_file", client.tls.CertFile},
			namedFile{client.path + ".key_file", client.tls.KeyFile})
	}
	return files
}
