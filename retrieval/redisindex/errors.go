package redisindex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval"
)

// passing are the beginnings of answers with which a server that is well says
// that it cannot do it now.
var passing = []string{
	"LOADING", "READONLY", "OOM", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "NOREPLICAS", "MISCONF", "UNBLOCKED",
	"ERR max number of clients", "Timeout limit was reached", "SEARCH_TIMEOUT",
}

// failed says what was being done when the client gave an error, and whether
// trying again can help.
func failed(ctx context.Context, doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	case unavailable(err):
		return fmt.Errorf("%s: %w: %w", doing, retrieval.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func unavailable(err error) bool {
	if answer, ok := errors.AsType[redis.Error](err); ok {
		return slices.ContainsFunc(passing, func(p string) bool { return strings.HasPrefix(answer.Error(), p) })
	}
	_, network := errors.AsType[net.Error](err)
	return network || slices.ContainsFunc(noAnswer, func(e error) bool { return errors.Is(err, e) })
}

// noAnswer are what the client says besides errors of the network when the
// server did not answer.
var noAnswer = []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, redis.ErrPoolTimeout, redis.ErrPoolExhausted}

// noIndex reports the answer for an index or alias that is not there.
func noIndex(err error) bool {
	answer, ok := errors.AsType[redis.Error](err)
	return ok && (strings.Contains(answer.Error(), "no such index") || strings.Contains(answer.Error(), "Unknown index name") || strings.Contains(answer.Error(), "Unknown Index name"))
}
