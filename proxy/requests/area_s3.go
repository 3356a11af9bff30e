package requests

import (
	"context"
	"errors"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/minio/minio-go/v7"

	"hooklock/idem"
)

// s3Area is the area in the bucket of an S3: each frame is an object.
type s3Area struct{ *S3 }

// maxPuts is how many objects are put at a time.
const maxPuts = 16

func (s s3Area) nameOf(of shelf, execution idem.ExecutionID) string {
	return s.folder() + of.folder() + "/" + string(execution)
}

func (s s3Area) write(ctx context.Context, of shelf, batch []*unwritten) {
	var all sync.WaitGroup
	defer all.Wait()
	turns := make(chan struct{}, maxPuts)
	for _, u := range batch {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			u.err = s.putObject(ctx, s.nameOf(of, u.at.Execution), u.frame)
		})
	}
}

func (s s3Area) read(ctx context.Context, of shelf, execution idem.ExecutionID) ([]byte, error) {
	b, err := s.getObject(ctx, s.nameOf(of, execution))
	if err != nil {
		return nil, err
	}
	sealed, ok := unframed(execution, b)
	if !ok {
		return nil, ErrNotKept
	}
	return sealed, nil
}

func (s s3Area) has(ctx context.Context, of shelf, execution idem.ExecutionID) error {
	ctx, cancel := s.within(ctx)
	defer cancel()
	_, err := s.client.Load().StatObject(ctx, s.options.Bucket, s.nameOf(of, execution), minio.StatObjectOptions{})
	if minio.ToErrorResponse(err).StatusCode == http.StatusNotFound { // the answer to a HEAD has no code
		return ErrNotKept
	}
	return s.failed("look for a request in", err)
}

func (s s3Area) erase(ctx context.Context, of shelf, execution idem.ExecutionID) error {
	return s.removeObject(ctx, s.nameOf(of, execution))
}

func (s s3Area) removeAll(ctx context.Context, of shelf) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	all := minio.ListObjectsOptions{Prefix: s.folder() + of.folder() + "/", Recursive: true}
	objects := func(yield func(minio.ObjectInfo) bool) {
		for object := range s.client.Load().ListObjectsIter(ctx, s.options.Bucket, all) {
			if object.Err != nil {
				failed = s.failed("list the requests in", object.Err)
				return
			}
			if !yield(object) {
				return
			}
		}
	}
	results, err := s.client.Load().RemoveObjectsWithIter(ctx, s.options.Bucket, objects, minio.RemoveObjectsOptions{})
	if err != nil {
		return s.failed("delete requests from", err)
	}
	for one := range results {
		if one.Err != nil && failed == nil {
			failed = s.failed("delete requests from", one.Err)
		}
	}
	return errors.Join(failed, s.failed("list the requests in", ctx.Err()))
}

func (s s3Area) note(ctx context.Context, name string) error {
	return s.putObject(ctx, s.folder()+countsFolder+"/"+name, nil)
}

func (s s3Area) forget(ctx context.Context, name string) error {
	return s.removeObject(ctx, s.folder()+countsFolder+"/"+name)
}

func (s s3Area) names(ctx context.Context, folder string) (names []string, err error) {
	prefix := s.folder() + folder + "/"
	for object := range s.client.Load().ListObjectsIter(ctx, s.options.Bucket,
		minio.ListObjectsOptions{Prefix: prefix}) {
		if object.Err != nil {
			return nil, s.failed("list the requests in", object.Err)
		}
		names = append(names, path.Base(strings.TrimSuffix(object.Key, "/")))
	}
	return names, s.failed("list the requests in", ctx.Err())
}
