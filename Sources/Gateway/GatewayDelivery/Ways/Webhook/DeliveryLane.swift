internal import CountersignCore
internal import GatewayModel

/// The state of one endpoint: its delivery of new events, and the replays and tests requested by operators.
struct DeliveryLane: Sendable {
    enum Job: Sendable {
        case events(WebhookEndpoint, DeliveryMachine.Work)
        case request(WebhookEndpoint, WebhookRequest)
    }

    var endpoint: WebhookEndpoint
    var machine: DeliveryMachine
    private var requests: [WebhookRequest] = []
    /// Whether a job is running. An endpoint has at most one.
    var isBusy = false
    /// The reduced batch size after a 413 response; nil if only the endpoint's setting applies.
    private var mostEvents: Int?
    /// Events and requests alternate.
    private var isRequestsTurn = true

    init(endpoint: WebhookEndpoint, machine: DeliveryMachine) {
        self.endpoint = endpoint
        self.machine = machine
    }

    /// Applies reloaded settings. A running delivery is not affected.
    mutating func take(over endpoint: WebhookEndpoint, _ requests: [WebhookRequest]) {
        self.endpoint = endpoint
        machine.take(over: endpoint)
        // Changed filters may match events that the previous ones skipped.
        machine.wake()
        self.requests = requests
    }

    /// Starts a job that is due; nil if there is nothing to do.
    mutating func begin(atMilliseconds now: Int64) -> Job? {
        if isBusy { return nil }
        let request = requests.first {
            DueTime.hasCome($0.nextMilliseconds, at: now, within: DeliveryMachine.longestPause)
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

    mutating func halve(from events: Int) {
        mostEvents = max(1, events / 2)
    }

    /// Raises a reduced batch size by an eighth after each accepted delivery.
    mutating func grow() {
        guard let most = mostEvents else { return }
        let larger = most + max(1, most / 8)
        mostEvents = larger < endpoint.batchSize ? larger : nil
    }

    /// Records the state of a request after an attempt, or removes it if it is complete.
    mutating func settle(_ request: WebhookRequest, isOver: Bool) {
        isBusy = false
        requests.removeAll { $0.id == request.id }
        guard !isOver else { return }
        requests.append(request)
        requests.sort { $0.id < $1.id }
    }
}
