import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test, type TestContext } from 'node:test'
import { serveHttp } from '@tenon/runtime'
import { runCommand } from '../../testing/command.test-support.ts'

const command = 'cluster-autoscaler'
const credentials = { EXOSCALE_ZONE: 'ch-gva-2', EXOSCALE_API_KEY: 'EXOkey', EXOSCALE_API_SECRET: 'hidden' }

/** A kubeconfig for a server that nobody is. */
async function kubeconfig(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-'))
  t.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'config')
  await writeFile(
    path,
    `apiVersion: v1
kind: Config
clusters: [{ name: c, cluster: { server: 'http://127.0.0.1:9' } }]
users: [{ name: u, user: {} }]
contexts: [{ name: x, context: { cluster: c, user: u } }]
current-context: x
`,
  )
  return path
}

test('CAS-108 a flag that is not known ends with usage and exit code 2', async () => {
  const { code, err, out } = await runCommand([command, '--bogus'])
  assert.deepEqual([code, out], [2, ''])
  assert.equal(
    err,
    'error: unknown flag --bogus\nUsage: tenon cluster-autoscaler [flags] (--help lists them)\n',
  )
})

test('CAS-20 CAS-58 CAS-109 what cannot be used is fatal, with one line', async () => {
  for (const args of [
    ['--expander=price'],
    ['--expander=random,least-waste'],
    ['--drain-priority-config=0:60', '--max-graceful-termination-sec=600'],
    ['--cloud-provider=gce'],
    ['--scheduler-config-file=/nowhere.yaml'],
  ]) {
    const { code, err } = await runCommand([command, ...args])
    assert.equal(code, 255, err)
    assert.match(err, /^error: --[^\n]+\n$/)
  }
})

test('help lists the flags in groups, and the clouds', async () => {
  const { code, out } = await runCommand([command, '--help'])
  assert.equal(code, 0)
  assert.match(out, /^Clouds: exoscale, clusterapi\.$/m)
  assert.match(out, /^Scale-down:\n {2}--scale-down-enabled {2}\(default true\)$/m)
})

test('CAS-1 the first setting of the cloud that is missing is told, and no secret', async (t) => {
  const flags = [command, `--kubeconfig=${await kubeconfig(t)}`, '--address=127.0.0.1:0']
  for (const name of ['EXOSCALE_ZONE', 'EXOSCALE_API_KEY', 'EXOSCALE_API_SECRET'] as const) {
    const env = Object.fromEntries(
      Object.entries(credentials).slice(0, Object.keys(credentials).indexOf(name)),
    )
    const { code, err } = await runCommand(flags, { env })
    assert.equal(code, 255)
    assert.match(err, new RegExp(`error: ${name} is not set`))
    for (const other of Object.keys(credentials).filter((each) => each !== name))
      assert.ok(!err.includes(`${other} is not set`), err)
    assert.ok(!err.includes('hidden'))
  }
})

test('a port that is taken is fatal', async (t) => {
  const server = await serveHttp(() => Promise.reject(new Error('unused')), { host: '127.0.0.1', port: 0 })
  t.after(() => server.close())
  const flags = [`--kubeconfig=${await kubeconfig(t)}`, `--address=127.0.0.1:${server.port}`]
  const { code, err } = await runCommand([command, ...flags], { env: credentials })
  assert.equal(code, 255)
  assert.match(err, /is already in use; choose another with --address\n$/)
})

test('CAS-105 the image has an executable /cluster-autoscaler that runs the command from /', async () => {
  const root = resolve(import.meta.dirname, '../../../../..')
  const dockerfile = await readFile(join(root, 'Dockerfile'), 'utf8')
  const [, image = ''] = dockerfile.split('FROM scratch')
  const [, source = ''] = /^COPY --from=build \/src\/(\S+) \/cluster-autoscaler$/m.exec(image) ?? []
  assert.match(image, /^WORKDIR \/$/m)
  const program = await readFile(join(root, source), 'utf8')
  const [, node = '', entry = ''] = /^#!(\S+) [\s\S]*import\('(\S+)'\)/.exec(program) ?? []
  assert.ok(image.includes(`ENTRYPOINT ["${node}",`), node)
  assert.ok(image.includes(`"${entry}"`), entry)
  assert.ok(((await stat(join(root, source))).mode & 0o111) !== 0, 'it is executable')
})
