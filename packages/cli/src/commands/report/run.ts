/** `tenon report`: what a cluster costs, what it could cost, and what stands in the way (adoption.md 1). */
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { readPriceFile } from '@tenon/api'
import { clusterReport, withPriceList } from '@tenon/ask/report'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { gathered, redactedFacts } from './gather.ts'
import { htmlOf } from './html.ts'
import { markdownOf } from './markdown.ts'
import { printedReport } from './printed.ts'
import { type ShadowFlags, shadowReport } from './shadow.ts'
import { shadowHtml, shadowMarkdown } from './shadow-pages.ts'

type ReportFormat = 'markdown' | 'html' | 'json'

export interface ReportFlags extends ShadowFlags {
  readonly shadow?: true
  readonly output?: ReportFormat
  readonly file?: string
  readonly prices?: string
  readonly redact?: true
}

/** @throws CliError if the cluster or a file cannot be read, or the report cannot be written. */
export async function runReport(io: Io, flags: ReportFlags): Promise<void> {
  const text = flags.shadow === true ? await shadowText(io, flags) : await reportText(io, flags)
  if (flags.file === undefined) io.out(text)
  else {
    await writeFile(resolve(io.cwd, flags.file), text).catch((cause: unknown) => {
      throw new CliError(`${flags.file ?? ''}: ${messageOf(cause)}`, { cause })
    })
    io.err(`${flags.file} saved\n`)
  }
}

async function reportText(io: Io, flags: ReportFlags): Promise<string> {
  if (flags.since !== undefined || flags.journal !== undefined)
    throw new CliError('--since and --journal belong to --shadow: a report is about the cluster as it is')
  const prices = flags.prices === undefined ? undefined : await priceListIn(io, flags.prices)
  const found = await gathered(io, flags)
  const named = flags.redact === true ? redactedFacts(found, redactKey(io)) : found
  const snapshot = prices === undefined ? named.snapshot : withPriceList(named.snapshot, prices)
  const report = printedReport(await clusterReport(snapshot, named), { ...named, snapshot })
  return textIn(formatOf(flags), report, { markdown: markdownOf, html: htmlOf })
}

async function shadowText(io: Io, flags: ReportFlags): Promise<string> {
  if (flags.prices !== undefined)
    throw new CliError('--shadow compares the prices of its journal: leave --prices out')
  const report = await shadowReport(io, flags, flags.redact === true ? redactKey(io) : undefined)
  return textIn(formatOf(flags), report, { markdown: shadowMarkdown, html: shadowHtml })
}

function textIn<T>(
  format: ReportFormat,
  report: T,
  forPeople: Readonly<Record<'markdown' | 'html', (report: T) => string>>,
): string {
  return format === 'json' ? `${JSON.stringify(report, null, 2)}\n` : forPeople[format](report)
}

function formatOf({ output, file = '' }: ReportFlags): ReportFormat {
  if (output !== undefined) return output
  const extension = extname(file)
  if (extension === '.html') return 'html'
  return extension === '.json' ? 'json' : 'markdown'
}

async function priceListIn(io: Io, path: string) {
  const text = await readFile(resolve(io.cwd, path), 'utf8').catch((cause: unknown) => {
    throw new CliError(`--prices: ${messageOf(cause)}`, { cause })
  })
  const { ok, error } = readPriceFile(text)
  if (ok === undefined) throw new CliError(`--prices ${path}: ${error}`)
  return ok
}

function redactKey({ env }: Io): string {
  return env['TENON_REDACT_KEY'] ?? randomBytes(32).toString('hex')
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}
