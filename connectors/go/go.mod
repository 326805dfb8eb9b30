module frontrow.example/connector

go 1.19
