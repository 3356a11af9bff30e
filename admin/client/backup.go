package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Backup writes a copy of the embedded etcd of the replica to w: an etcd snapshot, with its
// checksum at the end. After an error, what was written is of no use. It may take minutes:
// Options.Timeout does not end it, ctx does. A *Problem with CodeNoEmbeddedEtcd means that the
// replica has none.
func (c *Client) Backup(ctx context.Context, w io.Writer) error {
	return c.stream(ctx, call{path: "/v1/embedded/backup"}, "application/octet-stream", w)
}

// stream writes what a GET answers, which is of that media type, to w while it comes.
func (c *Client) stream(ctx context.Context, what call, media string, w io.Writer) error {
	what.method = http.MethodGet
	request, err := c.request(ctx, what)
	if err != nil {
		return fmt.Errorf("%s %s: %w", what.method, what.path, err)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("%s %s: %w", what.method, what.path, bare(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
		if err != nil {
			return fmt.Errorf("%s %s: read answer: %w", what.method, what.path, err)
		}
		return newProblem(answer, body)
	}
	if answer.Header.Get("Content-Type") != media {
		return newProblem(answer, nil)
	}
	if _, err := io.Copy(w, answer.Body); err != nil {
		return fmt.Errorf("%s %s: the copy was cut off: %w; see the log of hooklock, and try again", what.method,
			what.path, err)
	}
	return nil
}
