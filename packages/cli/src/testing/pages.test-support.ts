/** Pages of docs/, whose blocks of commands are run as a reader runs them. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { repositoryRoot } from './image.test-support.ts'

/** A block of a page between two lines of backquotes. */
export interface Block {
  /** Page and line. */
  readonly place: string
  /** What stands in the comment above it. */
  readonly marker: string
  readonly language: string
  readonly text: string
}

/** @param page path from the root of the repository. */
export function blocksOf(page: string): readonly Block[] {
  const all = readFileSync(join(repositoryRoot, page), 'utf8')
  return Array.from(
    all.matchAll(/(?:^<!-- (.*) -->\n)?^```(\w*)\n([^]*?)^```$/gm),
    ({ 1: marker = '', 2: language = '', 3: text = '', index }) => ({
      place: `${page}:${all.slice(0, index).split('\n').length}`,
      marker,
      language,
      text,
    }),
  )
}

export const hasKubectl: boolean = (process.env['PATH'] ?? '')
  .split(delimiter)
  .some((path) => existsSync(join(path, 'kubectl')))

/** Makes a program of a reader's folder. */
export async function addProgram(cwd: string, name: string, script: string): Promise<void> {
  await mkdir(join(cwd, 'bin'), { recursive: true })
  await writeFile(join(cwd, 'bin', name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
}

/** Makes `tenon` run the source. @param first lines of the shell that come before. */
export async function addTenon(cwd: string, first = ''): Promise<void> {
  const main = join(repositoryRoot, 'packages/cli/src/main.ts')
  await addProgram(cwd, 'tenon', `${first}\nexec '${process.execPath}' '${main}' "$@"`)
}

export interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Runs commands in a folder with its own programs first; the cluster is the one in `.tenon`. */
export function runCommands(
  cwd: string,
  commands: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const env = {
    PATH: `${join(cwd, 'bin')}${delimiter}${process.env['PATH']}`,
    HOME: cwd,
    KUBECONFIG: '.tenon/kubeconfig',
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '',
    ...variables,
  }
  const options = { cwd, env, maxBuffer: 64 * 1024 * 1024, timeout: 900_000 }
  return new Promise((done) => {
    const child = execFile('bash', ['-euo', 'pipefail', '-c', commands], options, (_error, out, err) => {
      done({ code: child.exitCode ?? 1, out, err })
    })
  })
}
