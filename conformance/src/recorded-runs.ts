/** The last run of the suite on each minor version of Kubernetes, and the page of the docs that shows them. */
import { readFileSync, writeFileSync } from 'node:fs'

interface RecordedRun {
  /** Of Kubernetes, such as `v1.37.2`. */
  readonly version: string
  /** Such as `2026-11-30`. */
  readonly date: string
  /** That Tenon was at. */
  readonly commit: string
  readonly seconds: number
  /** Whether each file of the suite passed, by name. */
  readonly files: Readonly<Record<string, boolean>>
}

/** By minor version, such as `1.37`. */
type RecordedRuns = Readonly<Record<string, RecordedRun>>

const file = new URL('../recorded-runs.json', import.meta.url)
const page = new URL('../../docs/versions.md', import.meta.url)
const begin = '<!-- written by npm run conformance -- --record -->'

/** Replaces what is recorded of this minor version, and writes the page. */
export function recordRun(run: RecordedRun): void {
  const [, minor = run.version] = /^v?(\d+\.\d+)/.exec(run.version) ?? []
  const before = JSON.parse(readFileSync(file, 'utf8')) as RecordedRuns
  const entries = Object.entries({ ...before, [minor]: run })
  const runs = Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)))
  writeFileSync(file, `${JSON.stringify(runs, undefined, 2)}\n`)
  const [prose = ''] = readFileSync(page, 'utf8').split(begin)
  writeFileSync(page, `${prose}${begin}\n\n${tables(runs)}`)
}

function tables(runs: RecordedRuns): string {
  const minors = Object.keys(runs)
  const files = [...new Set(Object.values(runs).flatMap((run) => Object.keys(run.files)))].toSorted()
  const cell = (minor: string, name: string): string => {
    const passed = runs[minor]?.files[name]
    return passed === undefined ? '' : passed ? '✓' : '**failed**'
  }
  return [
    '| Kubernetes | played on | commit | files | passed | minutes |',
    '|---|---|---|---|---|---|',
    ...Object.values(runs).map(({ version, date, commit, seconds, files: played }) => {
      const results = Object.values(played)
      const passed = results.filter(Boolean).length
      return `| ${version} | ${date} | \`${commit}\` | ${results.length} | ${passed} | ${Math.round(seconds / 60)} |`
    }),
    '',
    `| file of the suite | ${minors.join(' | ')} |`,
    `|---|${minors.map(() => '---|').join('')}`,
    ...files.map((name) => `| ${name} | ${minors.map((minor) => cell(minor, name)).join(' | ')} |`),
    '',
  ].join('\n')
}
