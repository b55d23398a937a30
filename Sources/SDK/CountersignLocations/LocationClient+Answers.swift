internal import CountersignTransport
internal import Foundation

extension LocationClient {
    func exchanged(_ result: Result<TransportResponse, HTTPTransportError>) {
        switch result {
        case .failure(let error):
            notify(UploadEvent(isSuccess: false, status: 0, responseText: "", error: "\(error)"))
        case .success(let response):
            let isSuccess = configuration.http.acknowledges(response)
            let isPage = !isSuccess && (200..<300).contains(response.status)
            notify(
                UploadEvent(
                    isSuccess: isSuccess, status: response.status,
                    responseText: String(decoding: response.body, as: UTF8.self),
                    error: isSuccess ? nil : isPage ? "page" : "http_\(response.status)"))
            if isPage { return }
            for command in ServerCommand.all(in: response) { perform(command) }
        }
    }

    private func notify(_ event: UploadEvent) {
        guard let handler = configuration.onHTTP else { return }
        callbacks.async { handler(event) }
    }

    /// Returns when the app's closures have been called for all earlier events.
    package func callbacksDelivered() async {
        await withCheckedContinuation { continuation in callbacks.async { continuation.resume() } }
    }

    private func perform(_ command: ServerCommand) {
        let configuration = configuration
        guard configuration.allowedCommands.contains(command.name) else {
            configuration.log?(
                .info, "a server's command was ignored", ["command": String(command.name.prefix(64))])
            return
        }
        switch command.name {
        case "start": start()
        case "stop": stop()
        case "setConfig":
            changing.lock()
            defer { changing.unlock() }
            guard let http = ServerCommand.apply(command.argument, to: self.configuration.http) else {
                configuration.log?(.warning, "a server's setConfig was rejected", [:])
                return
            }
            // Change only `http`, because the tokens may have changed since `configuration` was read.
            apply { $0.http = http }
        default: break
        }
    }
}
