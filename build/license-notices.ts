/** License notices that have to be distributed with bundled packages. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

interface BundledPackage {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly texts: readonly string[]
}

/**
 * The notices of all packages that `inputs` belong to; paths are relative to `root`.
 * @throws Error naming a package without a license.
 */
export function licenseNotices(root: string, inputs: readonly string[]): string {
  const folders = new Set(
    inputs.flatMap((path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []),
  )
  const packages = [...folders].toSorted().map((folder) => readPackage(join(root, folder)))
  const parts = packages.map(
    ({ name, version, license, texts }) => `${name} ${version}\nLicense: ${license}\n\n${texts.join('\n')}`,
  )
  return `This program contains the following packages.\n\n${parts.join(`\n${'-'.repeat(78)}\n\n`)}`
}

function readPackage(folder: string): BundledPackage {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    readonly name: string
    readonly version: string
    readonly license?: string
  }
  const { name, version, license } = manifest
  if (license === undefined) throw new Error(`${name} ${version} tells no license`)
  const files = readdirSync(folder).filter((file) => /^(?:licen[cs]e|notice|copying)\b/i.test(file))
  const texts = files.toSorted().map((file) => `${readFileSync(join(folder, file), 'utf8').trim()}\n`)
  return { name, version, license, texts }
}
