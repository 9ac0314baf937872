package redislink

import (
	"strings"
	"testing"
)

func TestHybrid(t *testing.T) {
	t.Parallel()
	for version, want := range map[int64]string{0: "no FT.HYBRID", 21005: "no FT.HYBRID", 80399: "no FT.HYBRID", 80400: "has FT.HYBRID", 80600: "has FT.HYBRID", 100000: "has FT.HYBRID"} {
		if got := hybrid(version); !strings.Contains(got, want) {
			t.Errorf("%d: %q, want %q", version, got, want)
		}
	}
}
