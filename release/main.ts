/**
 * Makes a release in one folder: the image for all architectures, charts, npm packages, CRDs, bill of materials,
 * checksums, signatures and provenance. Needs no container daemon. Publishes nothing: .github/workflows/release.yml does.
 * From the same commit it makes the same bytes, except those of the signatures.
 */
import { execFileSync } from 'node:child_process'
import {
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { repositoryRoot } from '../build/repository-root.ts'
import { architectures, debianPackages, nodePackage, updateBase } from './base.ts'
import { chartPackage, charts } from './charts.ts'
import { imageRecipe } from './dockerfile.ts'
import { type Image, layerOf, sha256, tarOf, writeLayout, writeSignature } from './oci.ts'
import { billOfMaterials } from './sbom.ts'
import { publicKeyOf, readKey, sign, signFolder, statementBundle, throwAwayKey } from './signing.ts'

const usage = `Usage: npm run release -- --dry-run [--outdir DIR] [--repository NAME]
       npm run release -- --key FILE [--outdir DIR] [--repository NAME]
       npm run release -- --update-base

Makes a release in a folder and publishes nothing. Needs git, npm, and apt-get with the sources of Debian 12.
docs/releases.md describes what is in the folder, and how to verify it.

  --dry-run          of whatever commit and version this is, signed with a key that is thrown away
  --key FILE         of a clean checkout at the tag of its version, signed with the private key in FILE, whose public
                     half is release/release.pub
  --outdir DIR       the folder, which is emptied first if it holds a release (default: dist/release)
  --repository NAME  where the image will be: the charts name it there (default: tenon)
  --update-base      only pins the newest packages of Debian for the image, in release/debian-packages.json
`
/** Committed before the first release, so that nobody has to trust the key in the folder. */
const publicKeyFile = 'release/release.pub'

interface Options {
  readonly isDryRun: boolean
  readonly keyFile: string | undefined
  readonly outdir: string
  readonly repository: string
}

async function release({ isDryRun, keyFile, outdir, repository }: Options): Promise<void> {
  const version = oneVersion()
  const commit = git('rev-parse', 'HEAD')
  const isClean = git('status', '--porcelain') === ''
  // The date of the commit: when it is built must not matter.
  const seconds = process.env['SOURCE_DATE_EPOCH'] ?? git('log', '-1', '--format=%ct')
  if (!/^\d{1,11}$/.test(seconds)) throw new Error(`SOURCE_DATE_EPOCH "${seconds}" is no time in seconds`)
  const date = new Date(Number(seconds) * 1000)
  const key = keyFile === undefined ? throwAwayKey() : readKey(readFileSync(keyFile, 'utf8'))
  if (!isDryRun) assertReleasable(`v${version}`, isClean, publicKeyOf(key))
  else if (!isClean)
    say('there are changes that are not committed: they are in it, and the provenance says so')
  emptyFolder(outdir)
  const file = (name: string) => join(outdir, name)

  const images: Image[] = []
  const recipe = imageRecipe()
  for (const architecture of architectures) {
    say(`image for linux/${architecture}, as the Dockerfile says`)
    for (const command of recipe.commands) {
      const args = command.map((word) => word.replaceAll('${TARGETARCH}', architecture))
      // What is the same for all architectures is made once.
      if (images.length === 0 || args.join() !== command.join()) run(process.execPath, args)
    }
    const layers = []
    for (const { from, to } of recipe.copies) layers.push(await layerOf(join(repositoryRoot, from), to, date))
    images.push({ architecture, layers, config: recipe.config })
  }
  const layout = emptyFolder('dist/image/layout')
  const name = `${repository}:v${version}`
  const image = writeLayout(layout, images, name, date)
  writeFileSync(file(`image-tenon-${version}.tar`), await tarOf(layout, date))

  say('charts')
  const chartImage = { repository, tag: `v${version}`, digest: image.digest }
  for (const chart of charts)
    writeFileSync(file(`${chart}-${version}.tgz`), await chartPackage(chart, chartImage, date))
  const crds = globSync('charts/tenon/crds/*.yaml', { cwd: repositoryRoot }).toSorted()
  writeFileSync(
    file('crds.yaml'),
    crds.map((path) => `---\n${readFileSync(join(repositoryRoot, path), 'utf8')}`).join(''),
  )

  say('npm packages')
  run(process.execPath, ['build/pack.ts'])
  // A chart and a package have the same name.
  for (const path of globSync('dist/npm/*.tgz', { cwd: repositoryRoot }))
    renameSync(join(repositoryRoot, path), file(path.replace('dist/npm/', 'npm-')))

  say('bill of materials')
  const notices = readFileSync(join(repositoryRoot, 'dist/image/app/THIRD-PARTY-LICENSES.txt'), 'utf8')
  writeFileSync(file(`sbom-tenon-${version}.cdx.json`), billOfMaterials(version, notices, date))

  say(
    isDryRun
      ? 'checksums, signatures and provenance, with a key that is thrown away'
      : 'checksums, signatures and provenance',
  )
  signFolder(outdir, key)
  const subjects = [
    ...readFileSync(file('SHA256SUMS'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split('  ')),
    [image.digest.slice('sha256:'.length), name],
  ].map(([digest, subject]) => ({ name: subject, digest: { sha256: digest } }))
  const statement = provenance({ version, repository, commit, isClean, isDryRun, subjects })
  writeFileSync(file('provenance.sigstore.json'), statementBundle(key, statement))
  const signed = emptyFolder('dist/image/signature')
  writeSignature(signed, image, name, (payload) => sign(key, payload))
  writeFileSync(file(`image-signature-tenon-${version}.tar`), await tarOf(signed, date))

  for (const each of readdirSync(outdir).toSorted())
    process.stdout.write(
      `${relative(process.cwd(), file(each))} ${Math.ceil(statSync(file(each)).size / 1024)} KiB\n`,
    )
  process.stdout.write(`image ${name}@${image.digest}\n`)
}

/** @throws Error naming a chart of another version than the packages. */
function oneVersion(): string {
  const { version } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8')) as {
    readonly version: string
  }
  for (const chart of charts) {
    const text = readFileSync(join(repositoryRoot, 'charts', chart, 'Chart.yaml'), 'utf8')
    for (const [line, field, found] of text.matchAll(/^(version|appVersion): *["']?([^"'\n]+)["']?$/gm))
      if (found !== version)
        throw new Error(`charts/${chart}/Chart.yaml says "${line}", and package.json ${field} ${version}`)
  }
  return version
}

function assertReleasable(tag: string, isClean: boolean, publicKey: string): void {
  if (!isClean) throw new Error('there are changes that are not committed')
  if (!git('tag', '--points-at', 'HEAD').split('\n').includes(tag))
    throw new Error(`HEAD has no tag ${tag}, the version of package.json`)
  const committed = globSync(publicKeyFile, { cwd: repositoryRoot }).map((path) =>
    readFileSync(join(repositoryRoot, path), 'utf8'),
  )
  if (committed[0]?.trim() !== publicKey.trim())
    throw new Error(
      `${publicKeyFile} is not the public half of the key: docs/releases.md says how it is made`,
    )
}

interface Made {
  readonly version: string
  readonly repository: string
  readonly commit: string
  readonly isClean: boolean
  readonly isDryRun: boolean
  readonly subjects: readonly object[]
}

/** A statement of in-toto with the provenance of SLSA: what was made, from what, by whom. */
function provenance({ version, repository, commit, isClean, isDryRun, subjects }: Made): object {
  const { GITHUB_SERVER_URL: forge, GITHUB_REPOSITORY: project, GITHUB_WORKFLOW_REF: workflow } = process.env
  const source = forge === undefined ? 'git+file:.' : `git+${forge}/${project}`
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: subjects,
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'https://tenon.sh/release/v1',
        externalParameters: { version, repository, dryRun: isDryRun, uncommittedChanges: !isClean },
        resolvedDependencies: [
          { uri: source, digest: { gitCommit: commit } },
          {
            uri: 'package-lock.json',
            digest: { sha256: sha256(readFileSync(join(repositoryRoot, 'package-lock.json'))) },
          },
          ...architectures.flatMap((architecture) => {
            const node = nodePackage(architecture)
            const sha512 = Buffer.from(node.integrity.replace('sha512-', ''), 'base64').toString('hex')
            return [
              { uri: `pkg:npm/${node.name}@${node.version}`, digest: { sha512 } },
              ...debianPackages.map((each) => ({
                uri: `pkg:deb/debian/${each.name}@${each.version}?arch=${architecture}`,
                digest: { sha256: each[architecture] },
              })),
            ]
          }),
        ],
      },
      runDetails: {
        builder: { id: workflow === undefined ? 'https://tenon.sh/release/local' : `${forge}/${workflow}` },
      },
    },
  }
}

/** @throws Error if there is something that is no release. */
function emptyFolder(path: string): string {
  const folder = resolve(repositoryRoot, path)
  mkdirSync(folder, { recursive: true })
  const names = readdirSync(folder)
  const isOurs =
    folder.startsWith(join(repositoryRoot, 'dist/')) || names.includes('provenance.sigstore.json')
  if (names.length > 0 && !isOurs) throw new Error(`${folder} holds other files; name another folder`)
  rmSync(folder, { recursive: true })
  mkdirSync(folder)
  return folder
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: repositoryRoot, encoding: 'utf8' }).trim()
}

function run(program: string, args: readonly string[]): void {
  execFileSync(program, args, { cwd: repositoryRoot, stdio: ['ignore', 'ignore', 'inherit'] })
}

function say(line: string): void {
  process.stderr.write(`release: ${line}\n`)
}

function readOptions(): Options | 'update-base' | undefined {
  const { values } = parseArgs({
    options: {
      'dry-run': { type: 'boolean', default: false },
      key: { type: 'string' },
      outdir: { type: 'string', default: 'dist/release' },
      repository: { type: 'string', default: 'tenon' },
      'update-base': { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return undefined
  if (values['update-base']) return 'update-base'
  if (values['dry-run'] === (values.key !== undefined)) throw new Error('give either --dry-run or --key FILE')
  // Without tag and digest: a port may follow the host.
  if (!/^[\w.-]+(:\d+)?(\/[a-z0-9._-]+)*$/.test(values.repository))
    throw new Error(`--repository ${values.repository} is no name of an image without a tag`)
  return {
    isDryRun: values['dry-run'],
    keyFile: values.key,
    outdir: resolve(repositoryRoot, values.outdir),
    repository: values.repository,
  }
}

try {
  const options = readOptions()
  if (options === undefined) process.stdout.write(usage)
  else if (options === 'update-base')
    for (const { name, version } of updateBase()) process.stdout.write(`${name} ${version}\n`)
  else await release(options)
} catch (error) {
  say(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
}
