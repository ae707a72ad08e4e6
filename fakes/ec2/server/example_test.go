package server_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/ec2/server"
)

// cloud is a model that answers at once. One that takes as long as EC2 does waits for what Travel says, before Serve and after it.
type cloud struct {
	mu    sync.Mutex
	model *ec2.Cloud
	start time.Time
}

func (c *cloud) Do(_ context.Context, r *ec2.Request) (ec2.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.model.Serve(time.Since(c.start), r), nil
}

// The model of EC2, asked by the AWS SDK.
func Example() {
	c := &cloud{start: time.Now(), model: ec2.New(ec2.Config{}, 1)}
	if _, err := c.model.Launch(0, ec2.LaunchSpec{Type: "m5.large"}); err != nil {
		fmt.Println(err)
		return
	}
	srv := httptest.NewServer(server.Handler(c))
	defer srv.Close()

	client := sdk.New(sdk.Options{
		Region: "us-west-2", BaseEndpoint: aws.String(srv.URL),
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""), // any: no keys are given to the server
	})
	out, err := client.DescribeInstances(context.Background(), &sdk.DescribeInstancesInput{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, i := range out.Reservations[0].Instances {
		fmt.Println(i.InstanceType, i.State.Name, "with", len(i.NetworkInterfaces), "interface")
	}
	// Output: m5.large running with 1 interface
}
