/** What `npm run pack` makes, as somebody has it who knows this repository by its packages alone. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { labels, type Node } from '@tenon/api'
import { repositoryRoot } from './testing/image.test-support.ts'
import {
  eventually,
  type Finished,
  kubectlOut,
  objectsOf,
  startTenon,
  temporaryDirectory,
  type TenonProcess,
} from './testing/tenon-process.test-support.ts'
import { version } from './version.ts'

const run = promisify(execFile)

/** Runs a program in a folder with this Node first in the path, and with nothing of what npm tells its scripts. */
async function runIn(cwd: string, program: string, ...args: readonly string[]): Promise<string> {
  const PATH = `${dirname(process.execPath)}:${process.env['PATH']}`
  try {
    return (await run(program, args, { cwd, env: { PATH, HOME: cwd } })).stdout
  } catch (error) {
    const { stdout, stderr } = error as { readonly stdout: string; readonly stderr: string }
    throw new Error(`${program} ${args.join(' ')}: ${stdout}${stderr}`, { cause: error })
  }
}

/** A folder with the example of a provider, and the packages that it needs. No registry is asked for anything. */
async function aFolderWithPackages(t: TestContext): Promise<string> {
  const cwd = await temporaryDirectory(t)
  const pack = join(repositoryRoot, 'build/pack.ts')
  const packed = await runIn(cwd, process.execPath, pack, '--outdir', join(cwd, 'packages'))
  const tarballs = packed
    .trim()
    .split('\n')
    .map((line) => line.split(' ')[0] ?? '')
  const names = [`tenon-${version}.tgz`, `tenon-provider-${version}.tgz`]
  assert.deepEqual(
    tarballs,
    names.map((name) => join(cwd, 'packages', name)),
  )
  await cp(join(repositoryRoot, 'examples/harbour-cloud'), cwd, { recursive: true })
  await runIn(cwd, 'npm', 'install', '--offline', '--no-audit', '--no-fund', ...tarballs)
  return cwd
}

/** The installed `tenon`, run by this Node. */
const start = (t: TestContext, cwd: string, ...args: readonly string[]): TenonProcess =>
  startTenon(t, cwd, args, {}, [join(cwd, 'node_modules/.bin/tenon')])

async function finished(t: TestContext, cwd: string, ...args: readonly string[]): Promise<Finished> {
  const running = start(t, cwd, ...args)
  return { ...(await running.ended), out: running.out(), err: running.err() }
}

const onFreePorts = ['--port', '0', '--api-port', '0']
const withHarbour = ['--provider', './src/module.ts']

test('the packed command runs its demonstration, and a provider written outside passes the contract and launches nodes', async (t) => {
  const cwd = await aFolderWithPackages(t)
  assert.equal(await runIn(cwd, 'npx', '--no', 'tenon', 'version'), `v${version}\n`)
  assert.equal(await runIn(cwd, 'npx', '--no', 'kubectl-tenon', 'version'), `v${version}\n`)
  for (const name of ['tenon', '@tenon/provider']) {
    const text = await readFile(join(cwd, 'node_modules', name, 'package.json'), 'utf8')
    const manifest = JSON.parse(text) as Readonly<Record<string, unknown>>
    assert.deepEqual([manifest['version'], manifest['dependencies']], [version, undefined], name)
  }
  await Promise.all([
    demonstrationRuns(t, cwd),
    typesHold(cwd),
    runIn(cwd, 'npm', 'test'),
    isValidated(t, cwd),
    launchesNodes(t, cwd),
  ])
})

/** In an empty folder, as `npx tenon up` does. */
async function demonstrationRuns(t: TestContext, installed: string): Promise<void> {
  const cwd = await temporaryDirectory(t)
  const up = startTenon(t, cwd, ['up', ...onFreePorts, '--boot-delay', '1s'], {}, [
    join(installed, 'node_modules/.bin/tenon'),
  ])
  await allPodsRun(up)
  assert.match(up.out(), /^simulated Exoscale /m)
  assert.deepEqual(await up.end('SIGINT'), { code: 130, signal: null })
}

async function allPodsRun(up: TenonProcess): Promise<void> {
  await eventually(
    () => /pods [1-9]\d* running 0 pending/.test(up.out()) || undefined,
    () => `all pods run: ${up.out()}${up.err()}`,
  )
}

/** Compiles the example as strictly as its own configuration says, with the declarations of the package. */
async function typesHold(cwd: string): Promise<void> {
  await mkdir(join(cwd, 'node_modules/@types'), { recursive: true })
  for (const name of ['@types/node', 'undici-types'])
    await symlink(join(repositoryRoot, 'node_modules', name), join(cwd, 'node_modules', name))
  await runIn(cwd, join(repositoryRoot, 'node_modules/.bin/tsc'), '--project', '.')
}

async function isValidated(t: TestContext, cwd: string): Promise<void> {
  const valid = await finished(t, cwd, 'validate', 'manifests.yaml', ...withHarbour)
  assert.equal(valid.code, 0, `${valid.out}${valid.err}`)
  const crds = await finished(t, cwd, 'crds', ...withHarbour)
  assert.match(crds.out, /^ {2}name: harbournodeclasses\.harbour\.example\.com$/m, crds.err)
}

/** The provider from outside in the cluster that it simulates, and a controller of its own. */
async function launchesNodes(t: TestContext, cwd: string): Promise<void> {
  const up = start(t, cwd, 'up', ...onFreePorts, '--boot-delay', '1s', ...withHarbour)
  await allPodsRun(up)
  const [node] = await objectsOf<Node>(cwd, 'nodes')
  assert.equal(node?.metadata.labels?.[labels.registered], 'true')
  assert.equal(node.metadata.labels['harbour.example.com/cpus'], '4')
  assert.deepEqual(node.spec?.taints ?? [], [])
  const aside = ['--disable-leader-election', '--metrics-port=0', '--health-probe-port=0', '--debug-port=0']
  const unset = await finished(
    t,
    cwd,
    'controller',
    '--kubeconfig',
    '.tenon/kubeconfig',
    ...aside,
    ...withHarbour,
  )
  assert.equal(unset.err, 'error: --harbour-url (HARBOUR_URL): give the URL of the cloud\n')
  assert.equal(unset.code, 2)
  await kubectlOut(cwd, ['delete', 'deployment,nodepool', '--all'])
  await eventually(
    async () => {
      const left = await Promise.all(['nodeclaims', 'nodes'].map((kind) => objectsOf(cwd, kind)))
      return left.flat().length === 0 || undefined
    },
    () => `the node goes: ${up.out()}${up.err()}`,
  )
  assert.deepEqual(await up.end('SIGINT'), { code: 130, signal: null })
}

test('an older Node is told to be too old', async () => {
  const older = "data:text/javascript,Object.defineProperty(process,'versions',{value:{node:'20.1.0'}})"
  const program = join(repositoryRoot, 'build/program.js')
  await assert.rejects(run(process.execPath, ['--import', older, program]), {
    code: 1,
    stderr: 'error: this is Node 20.1.0; install Node 24 or newer\n',
  })
})
