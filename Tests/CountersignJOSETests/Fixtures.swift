/// Keys made with OpenSSL's command line.
enum Fixtures {
    static let spki = """
        -----BEGIN PUBLIC KEY-----
        MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAwDRM/Kpx2rWQUqKSGzkt
        sdj0EOg+ONIEkIngfvh+HYA9w0v8tUKaqrBoMKkMGDOQ6tKJEADQjp9+9a1uuysM
        tqX2FbZfy0kg/OctWICudflbmEZgUVs9M/8teXpFNI1taZn5gg4en4iYHInDw/oD
        /dhtWKECXRDuorDzsg6pRP+koCZPkncc7YakvZ4ESXgIOImptunGB/isey35ogjS
        lTQslPhivJeThXNklmLbrJhuAvmt6I/DeB1v53HJ5mNmSb06eAg5x+rS6EiiO6Jh
        kQZUuTh+f50B5ozr3PdS4qSzBCtya2JaP8y4m0WBdEuxOg8VgigBhYp10oF734L8
        XwIDAQAB
        -----END PUBLIC KEY-----
        """

    static let pkcs1 = """
        -----BEGIN RSA PUBLIC KEY-----
        MIIBCgKCAQEAwDRM/Kpx2rWQUqKSGzktsdj0EOg+ONIEkIngfvh+HYA9w0v8tUKa
        qrBoMKkMGDOQ6tKJEADQjp9+9a1uuysMtqX2FbZfy0kg/OctWICudflbmEZgUVs9
        M/8teXpFNI1taZn5gg4en4iYHInDw/oD/dhtWKECXRDuorDzsg6pRP+koCZPkncc
        7YakvZ4ESXgIOImptunGB/isey35ogjSlTQslPhivJeThXNklmLbrJhuAvmt6I/D
        eB1v53HJ5mNmSb06eAg5x+rS6EiiO6JhkQZUuTh+f50B5ozr3PdS4qSzBCtya2Ja
        P8y4m0WBdEuxOg8VgigBhYp10oF734L8XwIDAQAB
        -----END RSA PUBLIC KEY-----
        """

    static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIC/zCCAeegAwIBAgIUe7ZXUVelnks0W4puwDpPEn2tIO0wDQYJKoZIhvcNAQEL
        BQAwDzENMAsGA1UEAwwEdGVzdDAeFw0yNjExMjEwMzEyMzBaFw0yNjExMjIwMzEy
        MzBaMA8xDTALBgNVBAMMBHRlc3QwggEiMA0GCSqGSIb3DQEBAQUAA4IBDwAwggEK
        AoIBAQDANEz8qnHatZBSopIbOS2x2PQQ6D440gSQieB++H4dgD3DS/y1QpqqsGgw
        qQwYM5Dq0okQANCOn371rW67Kwy2pfYVtl/LSSD85y1YgK51+VuYRmBRWz0z/y15
        ekU0jW1pmfmCDh6fiJgcicPD+gP92G1YoQJdEO6isPOyDqlE/6SgJk+SdxzthqS9
        ngRJeAg4iam26cYH+Kx7LfmiCNKVNCyU+GK8l5OFc2SWYtusmG4C+a3oj8N4HW/n
        ccnmY2ZJvTp4CDnH6tLoSKI7omGRBlS5OH5/nQHmjOvc91LipLMEK3JrYlo/zLib
        RYF0S7E6DxWCKAGFinXSgXvfgvxfAgMBAAGjUzBRMB0GA1UdDgQWBBRwNq+dBamV
        c0DPr9XNRxWbP0R4FDAfBgNVHSMEGDAWgBRwNq+dBamVc0DPr9XNRxWbP0R4FDAP
        BgNVHRMBAf8EBTADAQH/MA0GCSqGSIb3DQEBCwUAA4IBAQBTNuE87za21JxKmv0g
        Jt6XMm9CtorrCFG9Wk6mFMhLnaZ13rIK6nsk6vhnuygwkhiDM65/KmHPpL6LCfbv
        6mU6G37aA7BOqeHyn6HfmmrEYvrxhPzA1W/ijiikwsxVce4Irh8uD/wrv4N1W5Uo
        Ii1ZU/eABjtS1dqNX+pAf2CrvRKAssS4naAHsuRF2ny4+0zPT90P6pZrs1o6RTVd
        otRsR79uKKSDjmrielisg23ZS87pgGADaHsA1mvKV0dTYiuG1g0MXPFkJ96Z7McP
        LRiFZkedCqEK7BPVEAmUUWLdvjDGDQDUVQ3FpkebEeFNjIjYpNQ2ODyZ4ikS0U/b
        2qx6
        -----END CERTIFICATE-----
        """

    static let p384 = """
        -----BEGIN PUBLIC KEY-----
        MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAElSPlzevH9k4SGn7GvMwNSPQtj2amvafN
        FAwP/9K7u0KRY1MFu8u3Y7BTiEd3kQZJqRqGL3lnkAmYDbYegoR0IKgwoO3/ZR5k
        u3Wlr0l5H+msF4wYjeMKH8WdYhRcBONq
        -----END PUBLIC KEY-----
        """

    static let x25519 = """
        -----BEGIN PUBLIC KEY-----
        MCowBQYDK2VuAyEA0DrRb9JbRXUPHYoaqlSJAsjz2g8/3VLpMxc62+W7w3w=
        -----END PUBLIC KEY-----
        """

    static let pssOnly = """
        -----BEGIN PUBLIC KEY-----
        MIIBIDALBgkqhkiG9w0BAQoDggEPADCCAQoCggEBAK5Oekmf75dD321VXVXls7SU
        CfmIDyfebcef+6jf2hkli+KRCi6ucLLgs8PV/lG/2DgEv06XdofWbEgg4bUVh9ga
        7bST63D5mAD/j0qfsoaYs28H4r5KOJYrOssNdRjDtFyXd6CwqDXMj3HO6n7a3sXB
        LhbtN1OFPAME+y+ccENtgLqrMH9XzQPCmlutw82tEbp+cGHEy4QuA5EJ1s2rQVCi
        O1LpFdv9izkhewJGeTotVEvhwySnwRUAhH0y5XKYu6XitVlE0WbJyYGHzuNo9bo1
        tJ4XWWCiDqsSq0oe9e0hh8D/xrgiPgXWDMe5c8pj+zdzlRA1fKxGnHaPVceM5AUC
        AwEAAQ==
        -----END PUBLIC KEY-----
        """

    static let rsa1024 = """
        -----BEGIN PUBLIC KEY-----
        MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDYLK62nCyDNXqX0dT+gjbHSzfB
        lV4gW0MzLnP/HuzlZGhwQ3JyK8Z7eGLm8EJCEZViEObqTXCO/OfZ7PzSDNMMvv/K
        rKBVnuhxXhSiXYUfsnlkihG8lQxu0GEeiwGgyV/eOh30MD7B0nWvTuL8GPwGZ22U
        0eA//60pC+sel+PyxwIDAQAB
        -----END PUBLIC KEY-----
        """

    static let sec1 = """
        -----BEGIN EC PARAMETERS-----
        BggqhkjOPQMBBw==
        -----END EC PARAMETERS-----
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIAS/zs/J7uHMQ29HN7GrBFOUj3HIamek7IqXPPMUbfK4oAoGCCqGSM49
        AwEHoUQDQgAEmUgh/jQi+8K1LA6NtW5EWkO4oDNwQxzvYp2LEmG0KtJXdEazq3Jw
        dW56FHFKTYhDw3g4F2OB+wDu/24gjc4xHA==
        -----END EC PRIVATE KEY-----
        """
}
