import type { TransportRequest, TransportResponse } from '#src/provider/attempt.js'

/** A response of the transport with this JSON and without any header that the transport reads. */
export function responseWith(status: number, json?: unknown): TransportResponse {
  const headers = { retryAfterSeconds: undefined, date: undefined, location: undefined, setCookies: [] }
  return { status, json, ...headers, durationMs: 1 }
}

/** A transport that returns or throws the answers one after the other, and then the last one again and again. */
export function answering(...answers: [TransportResponse | Error, ...(TransportResponse | Error)[]]) {
  const requests: TransportRequest[] = []
  return {
    requests,
    async call(request: TransportRequest): Promise<TransportResponse> {
      const answer = answers[Math.min(requests.length, answers.length - 1)] as TransportResponse | Error
      requests.push(request)
      if (answer instanceof Error) throw answer
      return answer
    },
    enterQueue: async () => () => {}
  }
}
