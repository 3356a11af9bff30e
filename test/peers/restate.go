package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"

	"github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/encoding"
	"github.com/restatedev/sdk-go/server"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/h2c"
)

// delivery is a body of any type.
type delivery []byte

// RestateUnmarshal is of Restate.
func (d *delivery) RestateUnmarshal(_ encoding.Codec, body []byte) error {
	*d = body
	return nil
}

// InputPayload is of Restate.
func (d *delivery) InputPayload(encoding.Codec) *encoding.InputPayload {
	any := "*/*"
	return &encoding.InputPayload{Required: true, ContentType: &any}
}

// serveRestate is the service as a virtual object, whose exclusive handler runs once for each
// Idempotency-Key and alone for each key of the object. Deliveries go to Restate's ingress: POST
// /events/<workflow>/handle. It registers itself with the server whose admin API is at store.
func serveRestate(ctx context.Context, ln net.Listener, store string) error {
	handle := func(restate.ObjectContext, delivery) (json.RawMessage, error) { return json.RawMessage(answer), nil }
	endpoint, err := server.NewRestate().WithLogger(slog.DiscardHandler, true).
		Bind(restate.NewObject("events").Handler("handle", restate.NewObjectHandler(handle))).Handler()
	if err != nil {
		return err
	}
	service := &http.Server{Handler: h2c.NewHandler(endpoint, &http2.Server{})}
	served := make(chan error, 1)
	go func() { served <- service.Serve(ln) }()
	if err := register(ctx, store, "http://"+ln.Addr().String()); err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		_ = service.Close() // nobody waits for an answer any more
		<-served
		return nil
	}
}

func register(ctx context.Context, store, uri string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, store+"/deployments",
		bytes.NewReader(fmt.Appendf(nil, `{"uri":%q}`, uri)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		said, _ := io.ReadAll(io.LimitReader(response.Body, 2000))
		return fmt.Errorf("restate does not take the service: %s: %s", response.Status, said)
	}
	return nil
}
