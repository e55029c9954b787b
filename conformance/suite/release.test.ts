/**
 * A whole release, made twice by `npm run release -- --dry-run` in clones, verified as docs/releases.md says, and
 * installed from its folder. Needs root (mount, chroot) and Debian 12 (apt), and takes minutes: it is played when it is named.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { V1Pod } from '@kubernetes/client-node'
import { SystemClock } from '@tenon/runtime'
import { repositoryRoot } from '../../build/repository-root.ts'
import { Helm } from '../src/chart/helm.ts'
import { PodRunner } from '../src/chart/pod-runner.ts'
import { aDeployment, Cluster, kwokNode, sharedControlPlane, until } from './cluster.ts'

const namespace = 'kube-system'
const host = 'release-host'
const { version } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8')) as {
  readonly version: string
}

interface Manifest {
  readonly manifests: readonly {
    readonly digest: string
    readonly platform?: { readonly architecture: string }
  }[]
  readonly layers: readonly { readonly digest: string }[]
}

/** Clones this repository at its commit, installs what the lock file says, and makes the release. */
function makeRelease(clone: string, outdir: string, umask: string): string {
  mkdirSync(join(clone, '..'), { recursive: true })
  const commands = `
    umask ${umask}
    git clone --quiet "${repositoryRoot}" "${clone}"
    cd "${clone}"
    npm ci --no-audit --no-fund --prefer-offline >&2
    npm run -s release -- --dry-run --outdir "${outdir}"`
  return execFileSync('sh', ['-ec', commands], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}

/** Unpacks the image of an architecture, layer upon layer. */
function unpackImage(release: string, architecture: string, folder: string): string {
  const layout = join(folder, 'layout')
  const root = join(folder, architecture)
  for (const path of [layout, root]) mkdirSync(path, { recursive: true })
  execFileSync('tar', ['-xf', join(release, `image-tenon-${version}.tar`), '-C', layout])
  const blob = (digest: string) => join(layout, 'blobs', digest.replace(':', '/'))
  const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Manifest
  const [index] = read(join(layout, 'index.json')).manifests
  const image = read(blob(index?.digest ?? '')).manifests.find(
    ({ platform }) => platform?.architecture === architecture,
  )
  for (const { digest } of read(blob(image?.digest ?? '')).layers)
    execFileSync('tar', ['-xzf', blob(digest), '-C', root, '--no-same-owner'])
  chmodSync(root, 0o755)
  return root
}

/** Regular files below a folder. */
function filesOf(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    lstatSync(join(folder, path)).isFile(),
  )
}

/** The architecture of ELF files, by its number in their headers. */
function elfArchitecture(data: Buffer): number | undefined {
  return data.subarray(0, 4).toString('latin1') === '\x7fELF' ? data.readUInt16LE(18) : undefined
}

/** Runs a program of an image as its user, with /proc and a root file system that is read-only even for root. */
const inImage = `
  mount --bind "$0" "$0"
  mount --bind /proc "$0/proc"
  mount -o remount,bind,ro "$0"
  exec chroot --userspec=65532:65532 "$0" "$@"`

const elfNumbers = { amd64: 62, arm64: 183 } as const

describe('a release', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tenon-release-'))
  const release = join(folder, 'release')
  let printed = ''
  let root = ''

  before(() => {
    chmodSync(folder, 0o755)
    printed = makeRelease(join(folder, 'clone'), release, '022')
    root = unpackImage(release, 'amd64', folder)
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  test('ADO-10 another clone elsewhere gives the same checksums and the same digest of the image', () => {
    const other = join(folder, 'other')
    const printedThere = makeRelease(join(folder, 'another/deeper/tree'), other, '077')
    const sums = readFileSync(join(release, 'SHA256SUMS'), 'utf8')
    assert.equal(readFileSync(join(other, 'SHA256SUMS'), 'utf8'), sums)
    const digest = (text: string) => /^image tenon:v\S+@(sha256:[0-9a-f]{64})$/m.exec(text)?.[1]
    assert.ok(digest(printed))
    assert.equal(digest(printedThere), digest(printed))
    assert.equal(sums.trim().split('\n').length, 10)
  })

  test('ADO-10 each file of an image is of its architecture or portable, and there is no shell', () => {
    for (const [architecture, number] of Object.entries(elfNumbers)) {
      const image = architecture === 'amd64' ? root : unpackImage(release, architecture, folder)
      const programs = []
      let libraries = 0
      for (const path of filesOf(image)) {
        const data = readFileSync(join(image, path))
        const found = elfArchitecture(data)
        if (found !== undefined) {
          libraries += 1
          assert.equal(found, number, `${path} of ${architecture}`)
        }
        const isLibrary = /\.so(\.\d+)*$/.test(path)
        if (lstatSync(join(image, path)).mode & 0o111 && !isLibrary) programs.push(path)
      }
      assert.ok(libraries > 15, `${libraries} binary files`)
      assert.deepEqual(programs.toSorted(), ['app/tenon.mjs', 'cluster-autoscaler', 'usr/local/bin/node'])
    }
  })

  test('ADO-11 the documented commands accept the folder, and refuse it when one byte of any file is another', () => {
    const page = readFileSync(join(repositoryRoot, 'docs/releases.md'), 'utf8')
    const [, verify = ''] = /^<!-- run -->\n```sh\n(openssl dgst [^]*?)^```$/m.exec(page) ?? []
    const status = () => spawnSync('sh', ['-ec', verify], { cwd: release }).status
    assert.equal(status(), 0)
    const sums = readFileSync(join(release, 'SHA256SUMS'), 'utf8')
    const covered = sums
      .trim()
      .split('\n')
      .map((line) => line.split('  ')[1] ?? '')
    for (const name of [...covered, 'SHA256SUMS', 'SHA256SUMS.sig', 'release.pub']) {
      const path = join(release, name)
      const data = readFileSync(path)
      const changed = Buffer.from(data)
      const at = Math.floor(data.length / 2)
      changed.writeUInt8(data.readUInt8(at) ^ 1, at)
      writeFileSync(path, changed)
      assert.notEqual(status(), 0, `a changed ${name} is accepted`)
      writeFileSync(path, data)
    }
    assert.equal(status(), 0)
    for (const name of readdirSync(release))
      assert.ok(!readFileSync(join(release, name)).includes('PRIVATE KEY'), `${name} has a private key`)
    assert.deepEqual(
      readdirSync(release).filter((name) => !covered.includes(name)),
      [
        'SHA256SUMS',
        'SHA256SUMS.sig',
        'SHA256SUMS.sigstore.json',
        `image-signature-tenon-${version}.tar`,
        'provenance.sigstore.json',
        'release.pub',
      ],
    )
  })

  test('ADO-11 the command installs from its package and runs', () => {
    const cwd = join(folder, 'npm')
    mkdirSync(cwd)
    const run = (program: string, ...args: readonly string[]) =>
      execFileSync(program, args, { cwd, encoding: 'utf8', env: { ...process.env, INIT_CWD: cwd } })
    run('npm', 'install', '--offline', '--no-audit', '--no-fund', join(release, `npm-tenon-${version}.tgz`))
    assert.equal(run(process.execPath, 'node_modules/.bin/tenon', 'version'), `v${version}\n`)
  })

  test('ADO-11 the chart installs from its package, and the image runs as its controller on a read-only root file system', async (t) => {
    const controlPlane = await sharedControlPlane()
    t.after(() => controlPlane.stop())
    const cluster = new Cluster(controlPlane.kubeconfigPath)
    const helm = await Helm.open(folder, controlPlane.kubeconfigPath)
    await cluster.create(kwokNode(host, { 'kubernetes.io/os': 'linux', 'kubernetes.io/hostname': host }))
    t.after(async () => {
      await cluster.delete('apps/v1', 'Deployment', 'release-work', 'default')
      for (const name of ['tenon', 'tenon-crd'])
        await helm.run(['uninstall', name, '--namespace', namespace, '--ignore-not-found'])
      await cluster.delete('v1', 'Node', host)
    })
    const install = (name: string, ...more: readonly string[]) =>
      helm.must(['install', name, join(release, `${name}-${version}.tgz`), '--namespace', namespace, ...more])
    await install('tenon-crd', '--take-ownership', '--force-conflicts')
    await install('tenon', '--skip-crds')

    // What the image's user may read, and nobody else has to.
    const kubeconfig = join(root, 'kubeconfig')
    const admin = JSON.parse(readFileSync(controlPlane.kubeconfigPath, 'utf8'))
    const kubectl = (...args: readonly string[]) =>
      execFileSync(
        join(controlPlane.binDir, 'kubectl'),
        ['--kubeconfig', controlPlane.kubeconfigPath, ...args],
        { encoding: 'utf8' },
      )
    admin.users[0].user = { token: kubectl('create', 'token', 'tenon', '-n', namespace).trim() }
    writeFileSync(kubeconfig, JSON.stringify(admin), { mode: 0o644 })
    mkdirSync(join(root, 'proc'))
    const pods = async () =>
      (await cluster.list('v1', 'Pod', namespace, 'app.kubernetes.io/instance=tenon')) as object[] as V1Pod[]
    const entrypoint = ['/usr/local/bin/node', '--max-semi-space-size=4', '/app/tenon.mjs']
    const runner = new PodRunner({
      folder,
      kubeconfigPath: '/kubeconfig',
      command: ['unshare', '--mount', 'sh', '-ec', inImage, root, ...entrypoint],
      pods,
      clock: new SystemClock(),
    })
    t.after(() => runner.stop())
    await until('a ready controller', 120, async () => {
      runner.assertRunning()
      const [pod] = runner.running.values()
      const answer = pod && (await fetch(`http://127.0.0.1:${pod.probePort}/readyz`).catch(() => undefined))
      return answer?.status === 200
    })
    const [pod] = await pods()
    assert.match(pod?.spec?.containers[0]?.image ?? '', /^tenon:v[\d.]+@sha256:[0-9a-f]{64}$/)

    const nodeClassRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'release' }
    await cluster.create({
      apiVersion: 'karpenter.kwok.sh/v1alpha1',
      kind: 'KWOKNodeClass',
      metadata: { name: 'release' },
    })
    t.after(() => cluster.delete('karpenter.kwok.sh/v1alpha1', 'KWOKNodeClass', 'release'))
    await cluster.create({
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodePool',
      metadata: { name: 'release' },
      spec: { template: { spec: { nodeClassRef, requirements: [] } } },
    })
    await cluster.create(
      aDeployment({
        name: 'release-work',
        replicas: 1,
        cpu: '1',
        memory: '1Gi',
        nodeSelector: { 'karpenter.sh/nodepool': 'release' },
      }),
    )
    await until('the pod runs on a node that the image launched', 120, async () => {
      runner.assertRunning()
      const [work] = (await cluster.list('v1', 'Pod', 'default', 'app=release-work')) as object[] as V1Pod[]
      return work?.status?.phase === 'Running'
    })
    await cluster.delete('apps/v1', 'Deployment', 'release-work', 'default')
    await cluster.delete('karpenter.sh/v1', 'NodePool', 'release')
    await until('its nodes are gone', 120, async () => {
      const claims = await cluster.list(
        'karpenter.sh/v1',
        'NodeClaim',
        undefined,
        'karpenter.sh/nodepool=release',
      )
      return claims.length === 0
    })
  })
})
