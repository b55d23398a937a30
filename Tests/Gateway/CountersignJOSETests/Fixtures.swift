/// Keys, a certificate and tokens, made with OpenSSL's command line.
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

    /// PS256 with a salt of 20 bytes, by the key of `spki`.
    static let pssSalt20 = """
        eyJhbGciOiJQUzI1NiJ9.eyJzdWIiOiJ1c2VyLTEiLCJleHAiOjE4MDAwMDA2MDB9.lhSclLKv363k6DkS0FUcn8DC\
        DqW6DdERxAWxGfwUMHS6hIOV9WeCLFkYFyzf8kOoBygw7ZCTgvGrWEROXjOBUrOhF1g3PaiCxL1aIJe3_32bXioh7b\
        X0bNs2r_emJQfSCqHdEfPuE3KIvzfPCdSOonjeYKXnnMmgxFAi9FEVjfr6NF7-asZR7eCdb7CgxEWhytJZL5_7_xmq\
        Gwgr4QY19KjZTGegL39_YgCkX32RD8B5WOLCx8920JvH1jw76xnGkJUAcz_VDOSu6K-RXZ2xN2nqhoN_SG7FV0F2ay\
        z2HqHRIOygfWq0kBxoGyvZ2TFSgtMzrYqFCm-3PEeX-oQ4qQ
        """

    /// PS256 with a salt of 0 bytes, by the key of `spki`.
    static let pssSalt0 = """
        eyJhbGciOiJQUzI1NiJ9.eyJzdWIiOiJ1c2VyLTEiLCJleHAiOjE4MDAwMDA2MDB9.ZpOcuGLoHWxOxtYXEkdkmqeE\
        5OPUnZMgDE2Fd5o5u3_Qe_imENysvdGvzSIb1O03MZAR_8XEbCwlRwYTDI895TuZVM4X7darXJAMf-aoN4rwG0qXMr\
        rnfzdCaQ03untgXRwZCCBA0_dPpsVkLF2WNIt-Wsu3y6y2Fy38SsFxpcY2VNYC6bfmAEf_7nrp4BldQ5eqTeKcSSx4\
        9Gpco7zpehbJ8TO5y6j2wZi9B51hhDaejjpqyLM0oM8RD2A4bPx1KOtclLmNVW05cVcgIyJbS48wlSw_BsWOVtMara\
        wuVFoFmVKzkhGd1T5u_sV6TR4vSY0iawc_i37YDwczyxO6Xg
        """

    /// PS256 with a salt of 32 bytes, by the key of `spki`.
    static let pssSalt32 = """
        eyJhbGciOiJQUzI1NiJ9.eyJzdWIiOiJ1c2VyLTEiLCJleHAiOjE4MDAwMDA2MDB9.XgNZ80QGBR1Zid9kOzcbYNDm\
        IkRq1jV4m31J9T0rhfGsEVboWxi87touCpE3VyxL2i9f3d-7xfGswk3VhJz55EfiJAyP9zhYBmyMvlzVFrsnag5B-B\
        qQBiRsUQKAF97yiYBOXblh0HcTZQQWUfx4kZ7Gqj-Vy7Y8MmvyQZ8o7pHQ6TW9kdAFGuuqivCiCKtr96-beICpOw0F\
        Fi1I6UQyBlWhj4CLQ-ZIYc9uR06Z0FkYr1Kh29Fh08Q7tu2wZFHpLtweWyP1cheVjP1rvEagZ2qUZTBkI-MO-WQKaE\
        dptr0WKlv_rGNy3MUJx19kcc837YQdyv9BDx61WnAzPYVeOg
        """
}
