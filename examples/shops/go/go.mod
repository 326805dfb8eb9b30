module frontrow.example/shop

go 1.19

require frontrow.example/connector v0.0.0

replace frontrow.example/connector => ../../../connectors/go
