internal import CountersignCore
internal import GatewayModel

/// One endpoint and what is to be done for it: what comes by itself, and what an operator has asked for.
struct DeliveryLane: Sendable {
    enum Job: Sendable {
        case events(WebhookEndpoint, DeliveryMachine.Work)
        case request(WebhookEndpoint, WebhookRequest)
    }

    var endpoint: WebhookEndpoint
    var machine: DeliveryMachine
    private var requests: [WebhookRequest] = []
    /// True while a job is being done: there is never a second one.
    var isBusy = false
    /// The reduced batch size after a 413 response; nil if only the endpoint's setting applies.
    private var mostEvents: Int?
    /// The two kinds take turns.
    private var isRequestsTurn = true

    init(endpoint: WebhookEndpoint, machine: DeliveryMachine) {
        self.endpoint = endpoint
        self.machine = machine
    }

    /// Takes over what was read; what is being delivered stays as it is.
    mutating func take(over endpoint: WebhookEndpoint, _ requests: [WebhookRequest]) {
        self.endpoint = endpoint
        machine.take(over: endpoint)
        // Other filters may let through what the ones before did not.
        machine.wake()
        self.requests = requests
    }

    /// Begins what is due; nil when nothing is.
    mutating func begin(atMilliseconds now: Int64) -> Job? {
        if isBusy { return nil }
        let request = requests.first {
            DueTime.hasCome($0.nextMilliseconds, at: now, within: RetryPause.longest)
        }
        if let request, isRequestsTurn { return begin(request) }
        if case .deliver(let work) = machine.next(atMilliseconds: now) {
            isBusy = true
            isRequestsTurn = true
            return .events(limited, work)
        }
        return request.map { begin($0) }
    }

    private mutating func begin(_ request: WebhookRequest) -> Job {
        isBusy = true
        isRequestsTurn = false
        return .request(limited, request)
    }

    /// The endpoint with its batch size reduced after a 413 response.
    private var limited: WebhookEndpoint {
        var limited = endpoint
        if let mostEvents { limited.batchSize = min(mostEvents, endpoint.batchSize) }
        return limited
    }

    /// Halves the batch size after a 413 response.
    mutating func halve(from events: Int) {
        mostEvents = max(1, events / 2)
    }

    /// Raises a reduced batch size by an eighth after each accepted delivery.
    mutating func grow() {
        guard let most = mostEvents else { return }
        let larger = most + max(1, most / 8)
        mostEvents = larger < endpoint.batchSize ? larger : nil
    }

    /// A request has come so far, or is over.
    mutating func settle(_ request: WebhookRequest, isOver: Bool) {
        isBusy = false
        requests.removeAll { $0.id == request.id }
        guard !isOver else { return }
        requests.append(request)
        requests.sort { $0.id < $1.id }
    }
}
