/** `tenon report`: what a cluster costs, what it could cost, and what stands in the way (adoption.md 1). */
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { readPriceFile } from '@tenon/api'
import { clusterReport, withPriceList } from '@tenon/ask/report'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import type { SourceFlags } from '../../kubectl/flags.ts'
import { gathered, redactedFacts } from './gather.ts'
import { htmlOf } from './html.ts'
import { markdownOf } from './markdown.ts'
import { printedReport } from './printed.ts'

type ReportFormat = 'markdown' | 'html' | 'json'

export interface ReportFlags extends SourceFlags {
  readonly output?: ReportFormat
  readonly file?: string
  readonly prices?: string
  readonly redact?: true
}

/** @throws CliError if the cluster or a file cannot be read, or the report cannot be written. */
export async function runReport(io: Io, flags: ReportFlags): Promise<void> {
  const prices = flags.prices === undefined ? undefined : await priceListIn(io, flags.prices)
  const found = await gathered(io, flags)
  const named = flags.redact === true ? redactedFacts(found, redactKey(io)) : found
  const snapshot = prices === undefined ? named.snapshot : withPriceList(named.snapshot, prices)
  const report = printedReport(await clusterReport(snapshot, named), { ...named, snapshot })
  const text = {
    markdown: () => markdownOf(report),
    html: () => htmlOf(report),
    json: () => `${JSON.stringify(report, null, 2)}\n`,
  }[formatOf(flags)]()
  if (flags.file === undefined) io.out(text)
  else {
    await writeFile(resolve(io.cwd, flags.file), text).catch((cause: unknown) => {
      throw new CliError(`${flags.file ?? ''}: ${messageOf(cause)}`, { cause })
    })
    io.err(`${flags.file} saved\n`)
  }
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
