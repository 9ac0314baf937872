package redistest

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// slots is how many slots a cluster has.
const slots = 16384

// NewCluster starts a cluster of three masters with the Query Engine for one
// test, and waits until it answers. Each has a third of the slots, in order.
func NewCluster(t testing.TB) []*Server {
	t.Helper()
	nodes := make([]*Server, 3)
	for i := range nodes {
		bus, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		nodes[i] = New(t, t.TempDir(), "--cluster-enabled", "yes", "--cluster-port", bus)
		tell(t, nodes[i], fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", i*slots/3, (i+1)*slots/3-1))
		if i > 0 {
			_, port, _ := net.SplitHostPort(nodes[0].Address)
			tell(t, nodes[i], "CLUSTER MEET 127.0.0.1 "+port+" "+nodes[0].args[len(nodes[0].args)-1])
		}
	}
	for _, n := range nodes {
		Await(t, func() string {
			said, err := n.Say("CLUSTER INFO")
			if err != nil || !strings.Contains(said, "cluster_state:ok") || !strings.Contains(said, "cluster_known_nodes:3") {
				return said
			}
			return ""
		})
	}
	return nodes
}

func tell(t testing.TB, s *Server, command string) {
	t.Helper()
	if said, err := s.Say(command); err != nil || !strings.HasPrefix(said, "+OK") {
		t.Fatalf("%s: %s %v", command, said, err)
	}
}
