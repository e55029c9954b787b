/** docs/tracing.md, played: the receiver, a cluster that sends to it, and the annotation of NodeClaims. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { serveHttp } from '@tenon/runtime'
import { repositoryRoot } from './testing/image.test-support.ts'
import { blocksOf } from './testing/pages.test-support.ts'
import { eventually, runShell, startTenon, temporaryDirectory } from './testing/tenon-process.test-support.ts'

async function freePort(): Promise<number> {
  const server = await serveHttp(() => Promise.reject(new Error('unused')), { host: '127.0.0.1', port: 0 })
  await server.close()
  return server.port
}

/** Starts the receiver of the page. @returns what it has printed. */
function startReceiver(t: TestContext, file: string, port: number): () => string {
  const receiver = spawn(process.execPath, [join(repositoryRoot, file), String(port)])
  t.after(() => receiver.kill('SIGKILL'))
  let text = ''
  for (const stream of [receiver.stdout, receiver.stderr])
    stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
  return () => text
}

test('ADO-12 ADO-16 the commands of docs/tracing.md show the trace of a pod up to its node', async (t) => {
  const commandsOf = (marker: string) =>
    blocksOf('docs/tracing.md').flatMap((block) => (block.marker === marker ? [block.text.trimEnd()] : []))
  const [receive = '', send = ''] = commandsOf('run in the background')
  const [, file = ''] = /^node (examples\S+)$/.exec(receive) ?? []
  const [, variables = '', command] = /^((?:\w+=\S+ )+)tenon (\w+)$/.exec(send) ?? []
  assert.equal(command, 'up')
  const port = await freePort()
  const printed = startReceiver(t, file, port)
  await eventually(() => printed().includes('waiting for traces') || undefined, printed)
  const env = Object.fromEntries(
    variables
      .trim()
      .replace('4318', String(port))
      .split(' ')
      .map((pair) => pair.split('=') as [string, string]),
  )
  const cwd = await temporaryDirectory(t)
  const free = ['--port', '0', '--api-port', '0', '--boot-delay', '500ms']
  const up = startTenon(t, cwd, [command, ...free], env)
  /** The first whole trace of the form. */
  const trace = async (form: RegExp) =>
    await eventually(
      () =>
        printed()
          .split(/^(?=trace )/m)
          .map((text) => form.exec(text))
          .find((found) => found !== null),
      () => printed() + up.out() + up.err(),
    )
  const [, batch = '', claim = ''] = await trace(
    /^trace (\w+)\n {2}batch .*\n {4}wait [^]*\n {4}gather [^]*\n {4}decide .*\n {4}create .*\n {6}create NodeClaim .*-> (\w+)/,
  )
  await trace(
    new RegExp(
      `^trace ${claim}\\n {2}NodeClaim .*-> ${batch}\\n {4}launch [^]*\\n {6}cloud Create [^]*\\n {4}register [^]*\\n {4}initialize `,
    ),
  )
  const [asked = ''] = commandsOf('run')
  const { code, out, err } = await runShell(cwd, `export KUBECONFIG=.tenon/kubeconfig; ${asked}`)
  assert.equal(code, 0, err)
  assert.match(out, new RegExp(`^NAME +TRACE\\n[^]*00-${claim}-\\w{16}-01$`, 'm'))
  await up.end('SIGINT')
})
