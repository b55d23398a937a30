internal import CountersignCore
internal import Foundation

enum DevPage {
    static func html(gatewayURL: String, writeKey: String) -> String {
        """
        <!doctype html>
        <html lang="en">
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width">
        <title>countersign dev</title>
        <link rel="icon" href="data:,">
        <style>
        body { font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }
        label { display: block; margin: .5rem 0 } input { font: inherit; width: 100%; box-sizing: border-box; padding: .3rem }
        button { font: inherit; padding: .3rem 1rem } pre { background: #f3f3f3; color: #222; padding: 1rem; overflow: auto }
        </style>
        <h1>Record an event</h1>
        <form>
        <label>User <input name="user" value="user-1" required></label>
        <label>Event <input name="event" value="Button Clicked" required></label>
        <button>Record</button>
        </form>
        <h2>Result</h2>
        <pre id="state" role="status">Nothing was recorded yet.</pre>
        <script type="module">
        import { Countersign } from \(script(gatewayURL + "/sdk/countersign.js"));
        const client = new Countersign({
          endpoint: \(script(gatewayURL)),
          writeKey: \(script(writeKey)),
          tokenProvider: async ({ userId }) => {
            const answer = await fetch('/token?user=' + encodeURIComponent(userId));
            return (await answer.json()).token;
          },
        });
        const state = document.querySelector('#state');
        let failure = null;
        client.onAuthenticationFailure((found) => { failure = { code: found.code, reason: found.reason } });
        document.querySelector('form').addEventListener('submit', async (submitted) => {
          submitted.preventDefault();
          const fields = new FormData(submitted.target);
          failure = null;
          await client.changeUser(fields.get('user'));
          await client.track(fields.get('event'), { page: location.pathname });
          state.textContent = 'Recorded; being sent…';
          const { ending, batches } = await client.flush();
          const { queued, lastError } = await client.snapshot();
          state.textContent = JSON.stringify({ ending, batches, queued, lastError, failure }, null, 2);
        });
        </script>
        </html>

        """
    }

    /// A text as a JavaScript literal for an inline script: JSON with `<` escaped.
    private static func script(_ text: String) -> String {
        String(decoding: JSONValue.string(text).bytes, as: UTF8.self)
            .replacingOccurrences(of: "<", with: "\\u003C")
    }
}
