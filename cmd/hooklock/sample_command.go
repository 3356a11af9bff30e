package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
	"hooklock/proxy/sender"
)

// sampleTimeout bounds the whole exchange: longer than a route waits for a lock and its upstream by
// default.
const sampleTimeout = 60 * time.Second

// sampleOptions are the flags of hooklock sample.
type sampleOptions struct {
	url, publicURL, secretFile, webhookID, event string
	unsigned, show                               bool
}

func newSampleCommand(e *cli.Environment) *cobra.Command {
	var o sampleOptions
	cmd := &cobra.Command{
		Use:   "sample PRESET",
		Short: "send a signed sample delivery of a sender, to try a route before the sender does",
		Long: `Send one delivery as the sender of a preset would: its header, its body, a fresh event ID and a fresh signature.
The answer is printed; the command fails when it is not a 2xx. For senders with public keys, --secret-file is the private key of a test
pair whose public key is the route's public_key_file.`,
		Example: `  hooklock sample stripe --url http://127.0.0.1:8080/hooks/stripe/acme --secret-file stripe.secret
  hooklock sample github --url http://127.0.0.1:8080/hooks/github --secret-file github.secret --print`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Misuse(fmt.Errorf("%s takes one preset, such as stripe", cmd.CommandPath()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := o.buildRequest(args[0])
			if err != nil {
				return cli.Misuse(err)
			}
			if o.show {
				_, err := io.WriteString(e.Stdout, curlLine(r, o.url))
				return err
			}
			return sendSample(cmd.Context(), e, r, o.url)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.url, "url", "", "where the delivery is sent (required)")
	f.StringVar(&o.secretFile, "secret-file", "", "secret that the sample is signed with; one trailing newline is cut")
	f.StringVar(&o.publicURL, "public-url", "",
		"the route's public_url, for senders that sign it; by default the origin of --url")
	f.StringVar(&o.webhookID, "webhook-id", "", "the route's webhook_id (paypal)")
	f.StringVar(&o.event, "event", "", "event ID, to send a duplicate; by default a new one each time")
	f.BoolVar(&o.unsigned, "unsigned", false, "leave the signature out")
	f.BoolVar(&o.show, "print", false, "print a curl command instead of sending; its signature is good for minutes")
	return cmd
}

// buildRequest builds the sample.
func (o *sampleOptions) buildRequest(preset string) (*sender.Request, error) {
	u, err := url.Parse(o.url)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("--url %q: give where Hooklock listens, such as http://127.0.0.1:8080/hooks/stripe",
			o.url)
	}
	signed := u.Scheme + "://" + u.Host
	if o.publicURL != "" {
		signed = strings.TrimRight(o.publicURL, "/")
	}
	options := []sender.SampleOption{sender.WithURL(signed + u.RequestURI())}
	if o.webhookID != "" {
		options = append(options, sender.WithWebhookID(o.webhookID))
	}
	if o.event != "" {
		options = append(options, sender.WithEvent(o.event))
	}
	if o.unsigned {
		options = append(options, sender.Unsigned())
	}
	var secret []byte
	if o.secretFile != "" {
		text, err := os.ReadFile(o.secretFile)
		if err != nil {
			return nil, fmt.Errorf("--secret-file: %w", err)
		}
		secret = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	}
	r, err := sender.Sample(preset, secret, time.Now(), options...)
	if err != nil {
		return nil, err
	}
	r.Target = u.RequestURI() // the signature covers what an ingress strips
	return r, nil
}

// errNotTaken is returned for an answer other than 2xx.
var errNotTaken = errors.New("the sample was refused")

// sendSample sends r once and prints what came back.
func sendSample(ctx context.Context, e *cli.Environment, r *sender.Request, to string) error {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, to, bytes.NewReader(r.Body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	for _, f := range r.Fields {
		name := string(f.Name)
		req.Header[name] = append(req.Header[name], string(f.Value)) // spelled as the sender spells it
	}
	client := &http.Client{
		Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	fmt.Fprintf(e.Stdout, "> %s %s (%d bytes)\n", r.Method, r.Target, len(r.Body))
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("send sample: %w; is Hooklock running there?", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	fmt.Fprintf(e.Stdout, "< %s\n", res.Status)
	for _, name := range []string{"Hooklock-Decision", "Hooklock-Execution", "Idempotent-Replayed", "Retry-After"} {
		if value := res.Header.Get(name); value != "" {
			fmt.Fprintf(e.Stdout, "< %s: %s\n", name, value)
		}
	}
	fmt.Fprintf(e.Stdout, "%s\n", bytes.TrimRight(body, "\n"))
	switch {
	case res.StatusCode/100 != 2:
		return errNotTaken
	case res.Header.Get("Hooklock-Decision") == "":
		return fmt.Errorf("%w: no route of Hooklock has it; it may have passed through", errNotTaken)
	}
	return nil
}

// curlLine returns r as a command line.
func curlLine(r *sender.Request, to string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "curl -i -X %s %s", r.Method, story.ShellWord(to))
	for _, f := range r.Fields {
		fmt.Fprintf(&b, " \\\n  -H %s", story.ShellWord(string(f.Name)+": "+string(f.Value)))
	}
	fmt.Fprintf(&b, " \\\n  --data-binary %s\n", story.ShellWord(string(r.Body)))
	return b.String()
}
