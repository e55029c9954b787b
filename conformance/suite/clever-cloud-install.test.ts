/**
 * The Helm commands of docs/clever-cloud/install.md in a cluster at the simulated Clever Cloud, and a controller that
 * has the rights of the chart and no others: the embedded API server enforces them.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { SystemClock } from '@tenon/runtime'
import { repositoryRoot } from '../../build/repository-root.ts'
import { ensureBinaries } from '../src/binaries.ts'
import { until } from './cluster.ts'

const main = join(repositoryRoot, 'packages/cli/src/main.ts')
const page = readFileSync(join(repositoryRoot, 'docs/clever-cloud/install.md'), 'utf8')
const ours = 'not run: needs Helm; conformance/suite/clever-cloud-install.test.ts runs it'

/** The commands under a comment, by what their first line begins with. */
function block(marker: string, beginning: string): string {
  const blocks = page.split(`<!-- ${marker} -->\n\`\`\`sh\n`).slice(1)
  const found = blocks
    .map((text) => text.split('\n```')[0] ?? '')
    .filter((text) => text.startsWith(beginning))
  assert.equal(found.length, 1, `one block of ${beginning}`)
  return found[0] ?? ''
}

const folder = mkdtempSync(join(tmpdir(), 'tenon-install-'))
const kubeconfig = join(folder, '.tenon/kubeconfig')
const running: ChildProcess[] = []

after(async () => {
  for (const child of running) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
  }
  rmSync(folder, { recursive: true, force: true })
})

/** Starts `tenon`; what it says is in the returned list. */
function startTenon(...args: readonly string[]): string[] {
  const said: string[] = []
  const child = spawn(process.execPath, [main, ...args], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  running.push(child)
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => said.push(chunk.toString()))
  return said
}

let path = process.env['PATH'] ?? ''

/** Runs commands as a reader of the page does. @throws Error with what they said when they fail. */
function shell(commands: string): Promise<string> {
  const env = { PATH: path, HOME: folder, KUBECONFIG: kubeconfig }
  return new Promise((resolve, reject) => {
    execFile('bash', ['-euo', 'pipefail', '-c', commands], { cwd: folder, env }, (error, out, err) => {
      if (error === null) resolve(out)
      else reject(new Error(`${commands}\n${out}${err}`, { cause: error }))
    })
  })
}

/** A kubeconfig with the token of the service account that the chart has made. */
async function kubeconfigOfTheChart(): Promise<string> {
  const token = (await shell('kubectl create token karpenter --namespace karpenter')).trim()
  const file = join(folder, 'account.kubeconfig')
  writeFileSync(file, readFileSync(kubeconfig))
  await shell(
    `kubectl --kubeconfig ${file} config set-credentials account --token ${token}
     kubectl --kubeconfig ${file} config set-context --current --user account`,
  )
  assert.match(await shell(`kubectl --kubeconfig ${file} auth whoami`), /serviceaccount:karpenter:karpenter/)
  return file
}

test('the Helm commands of the guide work, and their rights are enough for nodes to come and go', async () => {
  const binaries = await ensureBinaries(['helm', 'kubectl'], {
    environment: process.env,
    clock: new SystemClock(),
    progress: (line) => process.stderr.write(`${line}\n`),
  })
  path = [...Object.values(binaries).map((program) => dirname(program)), path].join(delimiter)
  for (const name of ['examples', 'charts']) symlinkSync(join(repositoryRoot, name), join(folder, name))
  const ports = ['--port', '0', '--api-port', '0', '--boot-delay', '500ms']
  const cluster = startTenon('devcluster', '--provider', 'clever-cloud', ...ports)
  await until('the cluster is there', 60, () =>
    Promise.resolve(existsSync(kubeconfig) && /^for the controller /m.test(cluster.join(''))),
  )

  await shell(block(ours, 'helm upgrade --install karpenter-crd'))
  await shell(block(ours, 'helm upgrade --install karpenter charts/karpenter'))
  const nodes = 'kubectl get pods --namespace karpenter --output jsonpath={.items[*].spec.nodeName}'
  assert.match(await shell(nodes), /^control-plane-node\d$/)

  const account = await kubeconfigOfTheChart()
  const aside = ['--metrics-port', '0', '--health-probe-port', '0', '--debug-port', '0']
  const place = ['--leader-election-namespace', 'karpenter', '--kubeconfig', account]
  const controller = startTenon('controller', '--provider', 'clever-cloud', ...place, ...aside)
  await shell('kubectl apply -f examples/clever-cloud/general-purpose.yaml')
  await shell(block('run', 'kubectl apply -f examples/clever-cloud/workloads/inflate.yaml'))
  await shell(block(ours, 'helm upgrade karpenter-crd'))

  await shell(block('run', 'kubectl delete -f examples/clever-cloud/workloads/inflate.yaml'))
  assert.equal(await shell('kubectl get nodegroups --output name'), '')
  // From here on its account is gone.
  const log = controller.join('')
  await shell(block(ours, 'helm uninstall karpenter --namespace karpenter'))
  assert.match(await shell('kubectl get crd --output name'), /nodepools\.karpenter\.sh/, 'the kinds stay')
  assert.doesNotMatch(log, /forbidden|"level":"ERROR"/)
})
