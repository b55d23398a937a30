internal import CountersignCore
internal import CountersignJOSE
internal import Foundation

enum KeyGenerateCommand {
    private static let out = Flag(
        "out", .path("DIR"), default: ".", help: "where to write private.pem and public.pem")
    private static let algorithm = Flag(
        "alg", .choice(JWSAlgorithm.all.map(\.rawValue)), default: "RS256", help: "what the key pair is for")
    private static let bits = Flag(
        "bits", .integer("BITS", 2048...8192), default: "2048", help: "the size of an RSA key")

    static let command = Command(
        "key generate", summary: "Create a key pair in two files that only you can read",
        details: """
            private.pem stays with the backend that signs; it is never printed. public.pem goes to the gateway. Existing
            files are never overwritten.
            """,
        flags: [out, algorithm, bits, .json],
        examples: ["An RSA pair in this folder": "countersign key generate"]
    ) { invocation in
        let folder = URL(fileURLWithPath: try invocation.value(of: out) ?? ".")
        let name = try invocation.value(of: algorithm) ?? "RS256"
        let privatePath = folder.appendingPathComponent("private.pem").path
        let publicPath = folder.appendingPathComponent("public.pem").path
        for path in [privatePath, publicPath] where FileManager.default.fileExists(atPath: path) {
            throw CommandError(.conflict, "\(path) exists", hint: "move it away, or choose another --out DIR")
        }
        let key: SigningKey
        do throws(JOSEError) {
            key = try SigningKey.generate(
                JWSAlgorithm(rawValue: name), bits: (try? invocation.integer(of: bits)) ?? 2048)
        } catch {
            throw CommandError(.failed, error.reason)
        }
        try? FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try PrivateFile(creating: privatePath).write(key.privatePEM)
        try PrivateFile(creating: publicPath).write(key.publicKey.pem)
        if invocation.printsJSON {
            try invocation.io.print([
                "algorithm": .string(name), "bits": .integer(Int64(key.publicKey.bits)),
                "id": .string(key.publicKey.thumbprint), "private_key_file": .string(privatePath),
                "public_key_file": .string(publicPath),
            ])
        } else {
            invocation.io.say("Private key (keep it with your backend): \(privatePath)")
            invocation.io.say("Next: countersign key add APP \(publicPath)")
            try invocation.io.print(publicPath)
        }
    }
}
