package requests

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"hooklock/proxy/kept"
)

// keyLine is a line of a key file, with a key that is all of one byte.
func keyLine(id string, b byte) string {
	return id + " " + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, keyLen)) + "\n"
}

func keysOf(t *testing.T, text string) *Keys {
	t.Helper()
	keys, err := ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func written(t *testing.T) []byte {
	t.Helper()
	b, err := aRequest().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWithoutKeysARequestIsStoredAsItIs(t *testing.T) {
	plain := written(t)
	var none *Keys
	b := none.Seal(execution(1), plain)
	if !bytes.Equal(b, plain) {
		t.Errorf("stored %x", b)
	}
	if got, err := none.Open(execution(1), b); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("opened %x, %v", got, err)
	}
}

func TestTheFirstKeySealsAndAllOpen(t *testing.T) {
	plain := written(t)
	one := keysOf(t, keyLine("k1", 1))
	rolled := keysOf(t, "# rolled\n\n"+keyLine("k2", 2)+keyLine("k1", 1))
	old, young := one.Seal(execution(1), plain), rolled.Seal(execution(1), plain)
	if bytes.Contains(old, []byte("acme")) || !bytes.Contains(young, []byte("k2")) {
		t.Errorf("sealed %q, %q", old, young)
	}
	for name, b := range map[string][]byte{"old": old, "young": young} {
		if got, err := rolled.Open(execution(1), b); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := keysOf(t, keyLine("k2", 2)).Open(execution(1), old)
	if want := "key k1 is not in key_file: put the old key back below the new one"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	var none *Keys
	if _, err := none.Open(execution(1), old); err == nil || !strings.Contains(err.Error(), "set park_store.key_file") {
		t.Errorf("got %v", err)
	}
}

func TestBytesOfOneExecutionAreNotThoseOfAnother(t *testing.T) {
	keys := keysOf(t, keyLine("k1", 1))
	if _, err := keys.Open(execution(2), keys.Seal(execution(1), written(t))); !errors.Is(err, ErrTampered) {
		t.Errorf("got %v", err)
	}
}

func TestEachChangedByteIsNoticed(t *testing.T) {
	keys := keysOf(t, keyLine("k1", 1)+keyLine("K1", 1)) // the same key under another ID: the ID is covered, too
	b := keys.Seal(execution(1), []byte(kept.Magic))
	for i := range b {
		changed := bytes.Clone(b)
		changed[i] ^= 'k' ^ 'K'
		if got, err := keys.Open(execution(1), changed); err == nil {
			t.Errorf("byte %d: opened %q", i, got)
		}
		if got, err := keys.Open(execution(1), b[:i]); err == nil {
			t.Errorf("the first %d bytes: opened %q", i, got)
		}
	}
	_, err := keysOf(t, keyLine("k1", 9)).Open(execution(1), b)
	if !errors.Is(err, ErrTampered) || !strings.Contains(err.Error(), "another key under the ID k1") {
		t.Errorf("another key: %v", err)
	}
}

func TestWhatIsNotSealedIsRefusedUnlessTheFileSaysOtherwise(t *testing.T) {
	plain := written(t)
	if _, err := keysOf(t, keyLine("k1", 1)).Open(execution(1), plain); err == nil ||
		!strings.Contains(err.Error(), "add the line `unsealed` below the keys") {
		t.Errorf("got %v", err)
	}
	if got, err := keysOf(t, keyLine("k1", 1)+"unsealed").Open(execution(1), plain); err != nil ||
		!bytes.Equal(got, plain) {
		t.Errorf("got %v", err)
	}
	back := keysOf(t, "unsealed\n"+keyLine("k1", 1))
	if got := back.Seal(execution(1), plain); !bytes.Equal(got, plain) {
		t.Errorf("sealed %x", got)
	}
	if _, err := back.Open(execution(1), keysOf(t, keyLine("k1", 1)).Seal(execution(1), plain)); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestAKeyFileSaysWhatIsWrongAndNeverAKey(t *testing.T) {
	secret := strings.Fields(keyLine("x", 'S'))[1]
	for text, want := range map[string]string{
		"":                                      "no key",
		"# nothing\n":                           "no key",
		secret:                                  "line 1: a line has an ID, a space and a key",
		"k1 k2 " + secret:                       "line 1: a line has an ID",
		secret + " k1":                          "line 1: the first word is the key's ID",
		keyLine("k1", 1) + "k1 " + secret:       "line 2: k1 is there a second time",
		"k1 " + secret[:20]:                     "openssl rand -base64 32",
		"k1 " + strings.TrimRight(secret, "="):  "not 32 bytes",
		"unsealed " + secret:                    "and not the word unsealed",
		strings.Repeat("unsealed\n", 2):         "second time",
		strings.Repeat("k", 33) + " " + secret:  "at most 32 letters",
		strings.Repeat("k1 "+secret+"\n", 2):    "second time",
		strings.Repeat("\n", 3) + "k1 " + "aaa": "line 4",
	} {
		_, err := ParseKeys(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		} else if strings.Contains(err.Error(), secret[:8]) {
			t.Errorf("the key is in %q", err)
		}
	}
}
