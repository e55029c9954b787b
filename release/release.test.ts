/** What the release is made of, on a small scale. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createPublicKey } from 'node:crypto'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { bundleFromJSON } from '@sigstore/bundle'
import { toSignedEntity, Verifier } from '@sigstore/verify'
import { Ajv } from 'ajv'
import { repositoryRoot } from '../build/repository-root.ts'
import { chartPackage, charts } from './charts.ts'
import { imageRecipe } from './dockerfile.ts'
import { layerOf, sha256, writeLayout, writeSignature } from './oci.ts'
import { billOfMaterials } from './sbom.ts'
import { publicKeyOf, readKey, sign, signFolder, statementBundle, throwAwayKey } from './signing.ts'

const date = new Date('2026-01-01T00:00:00Z')
const digest = `sha256:${'a'.repeat(64)}`

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'tenon-release-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A small image, from files that were written in an order, with modes and at a time of their own. */
async function smallImage(folder: string, names: readonly string[], mode: number, time: Date) {
  const root = join(folder, 'root')
  mkdirSync(join(root, 'lib'), { recursive: true })
  for (const name of names) writeFileSync(join(root, name), `this is ${name}`, { mode })
  chmodSync(join(root, 'lib/program'), mode | 0o100)
  symlinkSync('program', join(root, 'lib/link'))
  for (const name of names) utimesSync(join(root, name), time, time)
  const layer = await layerOf(root, '/opt', date)
  const layout = join(folder, 'layout')
  mkdirSync(layout)
  const images = ['amd64', 'arm64'].map((architecture) => ({
    architecture,
    layers: [layer],
    config: { User: '65532:65532' },
  }))
  return { layer, layout, index: writeLayout(layout, images, 'registry.example.com:5000/tenon:v1', date) }
}

test('ADO-10 an image depends on names, contents and who may run them, not on order, modes, dates or folder', async (t) => {
  const names = ['b', 'lib/program', 'a']
  const first = await smallImage(temporaryFolder(t), names, 0o640, new Date(0))
  const second = await smallImage(temporaryFolder(t), names.toReversed(), 0o666, new Date())
  assert.equal(first.index.digest, second.index.digest)
  const tar = join(temporaryFolder(t), 'layer.tar.gz')
  writeFileSync(tar, first.layer.compressed)
  const listed = execFileSync('tar', ['-tvzf', tar], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], TZ: 'UTC' },
  })
  assert.deepEqual(
    listed
      .trim()
      .split('\n')
      .map((line) => line.replaceAll(/ +/g, ' ')),
    [
      'drwxr-xr-x 0/0 0 1970-01-01 00:00 opt/',
      '-rw-r--r-- 0/0 9 2026-01-01 00:00 opt/a',
      '-rw-r--r-- 0/0 9 2026-01-01 00:00 opt/b',
      'drwxr-xr-x 0/0 0 1970-01-01 00:00 opt/lib/',
      'lrwxr-xr-x 0/0 0 2026-01-01 00:00 opt/lib/link -> program',
      '-rwxr-xr-x 0/0 19 2026-01-01 00:00 opt/lib/program',
    ],
  )
})

test('ADO-11 a layout of OCI has an index of both platforms, and each blob is what its name says', async (t) => {
  const { index, layout } = await smallImage(temporaryFolder(t), ['lib/program'], 0o600, date)
  const read = (name: string) => JSON.parse(readFileSync(join(layout, name), 'utf8'))
  const blob = (name: string) => read(join('blobs', name.replace(':', '/')))
  assert.deepEqual(read('oci-layout'), { imageLayoutVersion: '1.0.0' })
  assert.deepEqual(
    read('index.json').manifests.map((each: { digest: string }) => each.digest),
    [index.digest],
  )
  const { manifests } = blob(index.digest)
  assert.deepEqual(
    manifests.map((each: { platform: object }) => each.platform),
    [
      { architecture: 'amd64', os: 'linux' },
      { architecture: 'arm64', os: 'linux', variant: 'v8' },
    ],
  )
  const config = blob(blob(manifests[1].digest).config.digest)
  assert.deepEqual([config.architecture, config.config], ['arm64', { User: '65532:65532' }])
  for (const name of readdirSync(join(layout, 'blobs/sha256')))
    assert.equal(sha256(readFileSync(join(layout, 'blobs/sha256', name))), name)

  const signed = join(temporaryFolder(t), 'signed')
  const key = throwAwayKey()
  writeSignature(signed, index, 'registry.example.com:5000/tenon:v1', (payload) => sign(key, payload))
  const refs = JSON.parse(readFileSync(join(signed, 'index.json'), 'utf8')).manifests.map(
    (each: { annotations: Record<string, string> }) => each.annotations['org.opencontainers.image.ref.name'],
  )
  assert.deepEqual(refs, ['v1', `${index.digest.replace(':', '-')}.sig`])
})

test('ADO-10 the image is what the Dockerfile says: from nothing, as nobody, by commands that need no daemon', () => {
  const { commands, copies, config } = imageRecipe()
  assert.deepEqual(
    commands.map(([script]) => script),
    ['release/base.ts', 'build/bundle.ts'],
  )
  assert.deepEqual(
    copies.map(({ to }) => to),
    ['/', '/app', '/cluster-autoscaler'],
  )
  assert.equal(config['User'], '65532:65532')
  assert.deepEqual(config['Env'], ['NODE_ENV=production'])
})

test('ADO-10 a chart is packaged to the same bytes, names the image by its digest, and leaves test data out', async (t) => {
  const image = { repository: 'registry.example.com/tenon', tag: 'v0.1.0', digest }
  for (const chart of charts) {
    const packaged = await chartPackage(chart, image, date)
    assert.equal(sha256(await chartPackage(chart, image, date)), sha256(packaged), chart)
    const folder = temporaryFolder(t)
    execFileSync('tar', ['-xz', '-C', folder], { input: packaged })
    const files = readdirSync(join(folder, chart), { recursive: true, encoding: 'utf8' })
    assert.ok(files.includes('Chart.yaml') && !files.includes('testdata'), chart)
    if (chart.endsWith('-crd')) continue
    const values = readFileSync(join(folder, chart, 'values.yaml'), 'utf8')
    assert.ok(values.includes('repository: registry.example.com/tenon\n') && values.includes(digest), chart)
  }
})

test('ADO-11 the bill of materials is valid CycloneDX, and names what is bundled, Debian packages and Node', () => {
  const notices =
    'diff 9.0.0\nLicense: BSD-3-Clause\n\ntext\n\n@scope/name 1.2.3\nLicense: (MIT OR Apache-2.0)\n'
  const text = billOfMaterials('0.1.0', notices, date)
  assert.equal(billOfMaterials('0.1.0', notices, date), text)
  const bom = JSON.parse(text) as { readonly components: readonly { readonly purl: string }[] }
  const library = createRequire(import.meta.url).resolve('@cyclonedx/cyclonedx-library/package.json')
  const schema = (name: string) =>
    JSON.parse(readFileSync(join(library, '../res/schema', `${name}.SNAPSHOT.schema.json`), 'utf8'))
  const ajv = new Ajv({ strict: false, validateFormats: false })
  for (const name of ['spdx', 'jsf-0.82'])
    ajv.addSchema(schema(name), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`)
  const validate = ajv.compile(schema('bom-1.6'))
  assert.ok(validate(bom), ajv.errorsText(validate.errors))
  const urls = bom.components.map(({ purl }) => purl)
  for (const start of [
    'pkg:npm/diff@9.0.0',
    'pkg:npm/%40scope/name@1.2.3',
    'pkg:deb/debian/libstdc%2B%2B6@',
    'pkg:generic/node@24.',
  ])
    assert.ok(
      urls.some((url) => url.startsWith(start)),
      `${start} in ${urls.join()}`,
    )
})

/** Blocks of docs/releases.md that are marked as run and begin with a program. */
function documented(program: string): string {
  const page = readFileSync(join(repositoryRoot, 'docs/releases.md'), 'utf8')
  const [, commands = ''] =
    new RegExp(`^<!-- run -->\n\`\`\`sh\n(${program} [^]*?)^\`\`\`$`, 'm').exec(page) ?? []
  assert.notEqual(commands, '', `docs/releases.md runs no ${program}`)
  return commands
}

function shell(commands: string, cwd: string) {
  return spawnSync('sh', ['-ec', commands], { cwd, encoding: 'utf8' })
}

test('ADO-11 the documented commands accept a signed folder, and refuse it when one byte of any file is another', (t) => {
  const folder = join(temporaryFolder(t), 'release')
  mkdirSync(folder)
  for (const name of ['tenon-0.1.0.tgz', 'crds.yaml']) writeFileSync(join(folder, name), `this is ${name}`)
  signFolder(folder, throwAwayKey())
  const verify = documented('openssl dgst')
  const accepted = shell(verify, folder)
  assert.equal(accepted.status, 0, accepted.stderr)
  assert.equal(accepted.stdout, 'Verified OK\ncrds.yaml: OK\ntenon-0.1.0.tgz: OK\n')

  const checked = readdirSync(folder).filter((name) => name !== 'SHA256SUMS.sigstore.json')
  for (const name of checked) {
    const changed = join(temporaryFolder(t), 'changed')
    cpSync(folder, changed, { recursive: true })
    const data = readFileSync(join(changed, name))
    const at = Math.floor(data.length / 2)
    data.writeUInt8(data.readUInt8(at) ^ 1, at)
    writeFileSync(join(changed, name), data)
    assert.notEqual(shell(verify, changed).status, 0, `a changed ${name} is accepted`)
  }
  const missing = join(temporaryFolder(t), 'missing')
  cpSync(folder, missing, { recursive: true })
  rmSync(join(missing, 'crds.yaml'))
  assert.notEqual(shell(verify, missing).status, 0, 'a missing file is accepted')
})

/** The judgement of sigstore's own library, with nothing to trust but one key. */
function acceptsBundle(bundle: string, publicKey: string, data?: Buffer): boolean {
  const key = { publicKey: createPublicKey(publicKey), validFor: () => true }
  const none = { tlogs: [], certificateAuthorities: [], ctlogs: [], timestampAuthorities: [] }
  const trusted = { ...none, publicKey: () => key }
  const verifier = new Verifier(trusted, { ctlogThreshold: 0, tlogThreshold: 0, timestampThreshold: 0 })
  try {
    verifier.verify(toSignedEntity(bundleFromJSON(JSON.parse(bundle)), data))
    return true
  } catch {
    return false
  }
}

test('ADO-11 sigstore accepts the signed checksums and the provenance, and neither with another byte or key', (t) => {
  const folder = temporaryFolder(t)
  const key = throwAwayKey()
  const publicKey = publicKeyOf(key)
  writeFileSync(join(folder, 'crds.yaml'), 'this is crds.yaml')
  signFolder(folder, key)
  const sums = readFileSync(join(folder, 'SHA256SUMS'))
  const bundle = readFileSync(join(folder, 'SHA256SUMS.sigstore.json'), 'utf8')
  assert.equal(acceptsBundle(bundle, publicKey, sums), true)
  assert.equal(acceptsBundle(bundle, publicKeyOf(throwAwayKey()), sums), false)
  assert.equal(acceptsBundle(bundle, publicKey, Buffer.from(String(sums).replace('crds', 'crdz'))), false)

  const provenance = statementBundle(key, { _type: 'https://in-toto.io/Statement/v1', subject: [] })
  assert.equal(acceptsBundle(provenance, publicKey), true)
  const { payload } = JSON.parse(provenance).dsseEnvelope as { readonly payload: string }
  const changed = payload.replace(/^./, (first) => (first === 'e' ? 'f' : 'e'))
  assert.equal(acceptsBundle(provenance.replace(payload, changed), publicKey), false)
})

test('ADO-11 the documented commands make a key that signs, others are refused, and no private key gets into a folder', (t) => {
  const folder = temporaryFolder(t)
  const made = shell(documented('openssl genpkey'), folder)
  assert.equal(made.status, 0, made.stderr)
  const key = readKey(readFileSync(join(folder, 'release.key'), 'utf8'))
  const signed = join(folder, 'signed')
  mkdirSync(signed)
  signFolder(signed, key)
  assert.equal(
    readFileSync(join(signed, 'release.pub'), 'utf8'),
    readFileSync(join(folder, 'release.pub'), 'utf8'),
  )
  for (const name of readdirSync(signed))
    assert.ok(!readFileSync(join(signed, name), 'utf8').includes('PRIVATE KEY'), name)
  const other = execFileSync('openssl', [
    'genpkey',
    '-algorithm',
    'EC',
    '-pkeyopt',
    'ec_paramgen_curve:P-384',
  ])
  assert.throws(() => readKey(String(other)), /not of the curve P-256/)
  assert.throws(() => readKey('release.pub'), /no private key in PEM/)
})

test('ADO-11 the command explains itself, and refuses what it cannot do before it does anything', (t) => {
  const run = (...args: readonly string[]) =>
    spawnSync(process.execPath, [join(import.meta.dirname, 'main.ts'), ...args], { encoding: 'utf8' })
  assert.match(run('--help').stdout, /^Usage: npm run release -- --dry-run/)
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, 'somebody.txt'), 'keep me')
  for (const [args, message] of [
    [[], /give either --dry-run or --key FILE/],
    [['--dry-run', '--repository', 'tenon:v1/'], /is no name of an image without a tag/],
    [['--dry-run', '--outdir', folder], /holds other files; name another folder/],
  ] as const) {
    const { status, stderr } = run(...args)
    assert.equal(status, 1, args.join(' '))
    assert.match(stderr, message)
    assert.ok(!stderr.includes('    at '), 'no stack')
  }
  assert.deepEqual(readdirSync(folder), ['somebody.txt'])
})
