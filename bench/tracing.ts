/**
 * What traces cost (ADO-12): the CPU time of the span of a request, from its begin until a receiver in another process has it.
 *
 *   npm run bench:tracing -- [--spans N]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { oneChunk, silentLogger, SystemClock, SystemRandom, traced, tracedTransport } from '@tenon/runtime'
import { openTracing } from '../packages/cli/src/commands/controller/tracing.ts'
import { benchArguments } from './arguments.ts'

const values = benchArguments('tracing', 'CPU time of spans.', {
  spans: { type: 'string', default: '50000', help: 'spans that are timed' },
})
const spans = Number(values.spans)

/** A receiver in a process of its own, so that its work is not measured. */
const discarding = `
  const { createServer } = require('node:http')
  const server = createServer((request, response) => { request.resume(); request.on('end', () => response.end('{}')) })
  server.listen(0, '127.0.0.1', () => console.log(server.address().port))`

/** CPU milliseconds of a request's span, from its begin until it is sent. */
async function spanCpuMs(): Promise<number> {
  const receiver = spawn(process.execPath, ['-e', discarding], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [port] = (await once(receiver.stdout, 'data')) as [Buffer]
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${String(port).trim()}`,
    OTEL_BSP_SCHEDULE_DELAY: '1',
  }
  const runtime = { clock: new SystemClock(), random: new SystemRandom(), logger: silentLogger }
  const tracing = await openTracing(env, { serviceName: 'bench', instance: 'bench' }, runtime)
  const answer = { status: 200, headers: {}, body: oneChunk('') }
  const bare = { send: () => Promise.resolve(answer) }
  const transport = tracedTransport(bare, tracing?.tracer, 'https://10.0.0.1')
  const request = {
    method: 'PATCH',
    path: '/apis/karpenter.sh/v1/nodeclaims/default-x7k2p/status',
    headers: {},
  }
  const run = async (many: number) => {
    for (let sent = 0; sent < many; sent += 500) {
      await traced(tracing?.tracer, 'launch', {}, async () => {
        for (let i = 0; i < 500; i++) await transport.send(request)
      })
      await sleep(5)
    }
  }
  await run(5000)
  const before = process.cpuUsage()
  await run(spans)
  await tracing?.close()
  const { user, system } = process.cpuUsage(before)
  receiver.kill()
  return (user + system) / 1000 / spans
}

process.stdout.write(`${((await spanCpuMs()) * 1000).toFixed(1)} µs of CPU time for a span\n`)
process.exit(0)
