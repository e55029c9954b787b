/** Packages the charts, byte for byte the same from the same files, with the image that belongs to them. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, matchesGlob } from 'node:path'
import { gzipSync } from 'node:zlib'
import { repositoryRoot } from '../build/repository-root.ts'
import { tarOf } from './oci.ts'

export const charts = ['tenon', 'tenon-crd', 'karpenter', 'karpenter-crd', 'cluster-autoscaler'] as const

export interface ChartImage {
  /** Without tag and digest. */
  readonly repository: string
  readonly tag: string
  readonly digest: string
}

/** Lines of values.yaml that name the image. Those of the Cluster Autoscaler have no digest: the tag carries it. */
const imageLines: Readonly<
  Record<string, (image: ChartImage) => readonly (readonly [line: string, released: string])[]>
> = {
  tenon: imageOfController,
  karpenter: imageOfController,
  'cluster-autoscaler': ({ repository, tag, digest }) => [
    ['  repository: tenon', `  repository: ${repository}`],
    ["  tag: ''", `  tag: ${tag}@${digest}`],
  ],
}

function imageOfController({ repository, digest }: ChartImage): readonly (readonly [string, string])[] {
  return [
    ['    repository: tenon', `    repository: ${repository}`],
    ["    digest: ''", `    digest: ${digest}`],
  ]
}

/**
 * The package of a chart, from the files that git knows.
 * @throws Error if its values lack the lines that name the image.
 */
export async function chartPackage(chart: string, image: ChartImage, date: Date): Promise<Buffer> {
  const source = join('charts', chart)
  const ignored = readFileSync(join(repositoryRoot, source, '.helmignore'), 'utf8')
    .split('\n')
    .map((line) => line.replace(/\/$/, ''))
  const listed = execFileSync('git', ['ls-files', '-z', source], { cwd: repositoryRoot, encoding: 'utf8' })
  const files = listed
    .split('\0')
    .filter((path) => path !== '')
    .map((path) => path.slice(source.length + 1))
    .filter((path) => !path.split('/').some((part) => ignored.some((pattern) => matchesGlob(part, pattern))))
  const staged = join(repositoryRoot, 'dist/charts', chart)
  rmSync(staged, { recursive: true, force: true })
  for (const path of files) {
    const target = join(staged, chart, path)
    mkdirSync(dirname(target), { recursive: true })
    cpSync(join(repositoryRoot, source, path), target)
  }
  const values = join(staged, chart, 'values.yaml')
  for (const [line, released] of imageLines[chart]?.(image) ?? []) {
    const lines = readFileSync(values, 'utf8').split('\n')
    if (lines.filter((each) => each === line).length !== 1)
      throw new Error(`charts/${chart}/${basename(values)} should have the line "${line}" once`)
    writeFileSync(values, lines.map((each) => (each === line ? released : each)).join('\n'))
  }
  return gzipSync(await tarOf(staged, date))
}
