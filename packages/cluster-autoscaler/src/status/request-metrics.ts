/** Metrics of requests to the API server, with the names of Go clients. */
import type { Clock, Transport } from '@tenon/runtime'
import { Counter, Histogram, type Registry } from 'prom-client'

const buckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]

/** @returns a function that wraps transports to a host to count requests in the registry. */
export function requestCounting(
  registry: Registry,
  clock: Clock,
): (inner: Transport, host: string) => Transport {
  const registers = [registry]
  const requests = new Counter({
    name: 'rest_client_requests_total',
    help: 'Requests to the API server, by method and status; <error> when there was no answer',
    labelNames: ['code', 'host', 'method'],
    registers,
  })
  const durations = new Histogram({
    name: 'rest_client_request_duration_seconds',
    help: 'Seconds until the head of an answer of the API server',
    labelNames: ['host', 'verb'],
    buckets,
    registers,
  })
  return (inner, host) => ({
    send: async (request, signal) => {
      const { method } = request
      const startMs = clock.monotonic()
      let code = '<error>'
      try {
        const response = await inner.send(request, signal)
        code = String(response.status)
        return response
      } finally {
        requests.inc({ code, host, method })
        durations.observe({ host, verb: method }, (clock.monotonic() - startMs) / 1000)
      }
    },
  })
}
