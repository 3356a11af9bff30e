package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
)

const (
	// sendTime bounds one message, from the look-up of the receiver's name to the end of its
	// answer.
	sendTime = 5 * time.Second
	// mostAnswer bounds what is read of a receiver's answer, in bytes; mostShown what is shown of
	// it, in characters.
	mostAnswer, mostShown = 4 << 10, 200
)

// Answer is what a receiver answered. Status 0: it gave no whole head.
type Answer struct {
	Status int
	Text   string // the beginning of its body, on one line
}

// postMessage posts a message as JSON that has a text alone: Google Chat takes no other member. It
// returns an error unless the receiver said 2xx. The error does not have the path and the query of
// its address, which are its secret.
func postMessage(ctx context.Context, client *http.Client, to, text string) (a Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	body, err := json.Marshal(struct {
		Text string `json:"text"`
	}{text})
	if err != nil {
		return a, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return a, errors.New("the URL of the receiver is none") // its error would quote it
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "hooklock")
	answer, err := client.Do(request)
	if err != nil {
		return a, withoutURL(err, to)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	a = Answer{Status: answer.StatusCode, Text: hideAddress(oneLine(string(said), mostShown), to)}
	switch {
	case a.Status/100 != 2:
		return a, fmt.Errorf("the receiver answered %d%s", a.Status, answerAfterStatus(a.Text))
	case err != nil:
		return a, fmt.Errorf("the receiver answered %d, and its answer broke off: %w", a.Status, withoutURL(err, to))
	}
	return a, nil
}

// answerAfterStatus returns what a receiver said behind its status; "" if it said nothing.
func answerAfterStatus(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// withoutURL returns the error of a request to an address, without the address.
func withoutURL(err error, to string) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the receiver did not answer within %v", sendTime)
	}
	return errors.New(hideAddress(oneLine(err.Error(), mostShown), to))
}

// hideAddress replaces the secret parts of an address in a text: receivers quote it, and so do
// proxies.
func hideAddress(text, to string) string {
	target, err := url.Parse(to)
	if err != nil {
		return strings.ReplaceAll(text, to, "…")
	}
	password, _ := target.User.Password()
	for _, secret := range []string{target.RequestURI(), target.EscapedPath(), target.Path, target.RawQuery, password} {
		if len(secret) > 1 { // "/" is none
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return text
}

// oneLine returns a text on one line, without characters that cannot be shown, cut to so many
// characters.
func oneLine(text string, most int) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// newClient returns the client for messages. It keeps no connection and follows no redirect: a
// receiver that moved is to be corrected in its file. Proxies of the environment are used.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSHandshakeTimeout: sendTime,
			MaxResponseHeaderBytes: 64 << 10,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
