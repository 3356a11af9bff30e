package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// postgres keeps events in a table, and a workflow's lock as an advisory one.
type postgres struct{ pool *pgxpool.Pool }

// postgresOnce runs the work inside the transaction that records it: one commit. If the process
// dies in between, nothing says that the work began.
type postgresOnce struct{ postgres }

// postgresTwice commits that the event begins, runs it, and commits how it ended, as Hooklock does.
// The lock is the session's, so a connection that breaks frees it while the work goes on.
type postgresTwice struct{ postgres }

// postgresSessions is enough for group commit, and below the 100 that a server takes by default.
const postgresSessions = "64"

func openPostgres(ctx context.Context, store string, commits int) (guard, error) {
	config, err := pgxpool.ParseConfig(store + "?sslmode=disable&pool_max_conns=" + postgresSessions)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	p := postgres{pool}
	// No answer: it has begun. Two services start at a time, and IF NOT EXISTS alone does not see
	// the other one.
	_, err = pool.Exec(ctx,
		`SELECT pg_advisory_lock(1); CREATE TABLE IF NOT EXISTS events (id text PRIMARY KEY, workflow text NOT NULL, began timestamptz NOT NULL DEFAULT now(), answer bytea); SELECT pg_advisory_unlock(1)`)
	if err != nil {
		pool.Close()
		return nil, err
	}
	if commits == 1 {
		return &postgresOnce{p}, nil
	}
	return &postgresTwice{p}, nil
}

func (p *postgres) close() { p.pool.Close() }

const (
	lockOfTransaction = `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`
	lockOfSession     = `SELECT pg_advisory_lock(hashtextextended($1, 0))`
	unlockSession     = `SELECT pg_advisory_unlock(hashtextextended($1, 0))`
	findEvent         = `SELECT answer FROM events WHERE id = $1`
	keepEvent         = `INSERT INTO events (id, workflow, answer) VALUES ($1, $2, $3)`
	beginEvent        = `INSERT INTO events (id, workflow) VALUES ($1, $2) ON CONFLICT DO NOTHING`
	endEvent          = `UPDATE events SET answer = $2 WHERE id = $1`
)

// run takes two round trips. Statements after that of the lock see what was committed before it was
// given.
func (p *postgresOnce) run(ctx context.Context, workflow, event string, work func() []byte) (body []byte, err error) {
	c, err := p.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Release() // one that is inside of a transaction is closed by it
	var b pgx.Batch
	b.Queue("BEGIN")
	b.Queue(lockOfTransaction, workflow)
	found := false
	b.Queue(findEvent, event).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&body)
		found = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err := c.SendBatch(ctx, &b).Close(); err != nil {
		return nil, err
	}
	var end pgx.Batch
	if !found {
		body = work()
		end.Queue(keepEvent, event, workflow, body)
	}
	end.Queue("COMMIT")
	return body, c.SendBatch(ctx, &end).Close()
}

// run takes three round trips, two of which commit.
func (p *postgresTwice) run(ctx context.Context, workflow, event string, work func() []byte) (body []byte, err error) {
	c, err := p.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Release()
	var b pgx.Batch
	b.Queue(lockOfSession, workflow)
	b.Queue(findEvent, event).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&body); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	})
	var began int64
	b.Queue(beginEvent, event, workflow).Exec(func(tag pgconn.CommandTag) error {
		began = tag.RowsAffected()
		return nil
	})
	if err := c.SendBatch(ctx, &b).Close(); err != nil {
		_ = c.Conn().Close(ctx) // the lock goes with it
		return nil, err
	}
	if began == 1 {
		body = work()
		_, err = c.Exec(ctx, endEvent, event, body)
	} else if body == nil {
		err = errUnknown
	}
	// after the commit: a copy has to find the answer
	if _, unlockErr := c.Exec(ctx, unlockSession, workflow); unlockErr != nil {
		_ = c.Conn().Close(ctx)
	}
	return body, err
}
