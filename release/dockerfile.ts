/** Reads the Dockerfile, so that the release and the tests do what it says without a daemon. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { repositoryRoot } from '../build/repository-root.ts'

/** One instruction, such as `COPY` with `LICENSE ./`. */
export interface Instruction {
  readonly name: string
  readonly text: string
}

/**
 * The stages of the Dockerfile; what stands before the first is in a stage of its own.
 * @throws Error naming a line that is not an instruction of one line.
 */
export function dockerStages(): readonly (readonly Instruction[])[] {
  const stages: Instruction[][] = [[]]
  for (const line of readFileSync(join(repositoryRoot, 'Dockerfile'), 'utf8').split('\n')) {
    const [, name, text] = /^([A-Z]+) +(.*\S)\s*$/.exec(line) ?? []
    if (name === undefined || text === undefined) {
      if (line !== '' && !line.startsWith('#')) throw new Error(`not an instruction of one line: ${line}`)
      continue
    }
    if (name === 'FROM') stages.push([])
    stages.at(-1)?.push({ name, text })
  }
  return stages
}

/** What the image is: the last stage, which only copies from the stage before it and says how to run it. */
export interface ImageRecipe {
  /** Arguments of Node in the stage before it, in order; `${TARGETARCH}` stands for the architecture. */
  readonly commands: readonly (readonly string[])[]
  /** Each becomes a layer: a path in the repository, and where it is in the image. */
  readonly copies: readonly { readonly from: string; readonly to: string }[]
  /** The fields of an image configuration of OCI. */
  readonly config: Readonly<Record<string, unknown>>
}

/** The folder of the repository in the stage that builds. */
const buildFolder = '/src/'

/** @throws Error naming an instruction that cannot be carried out without a daemon. */
export function imageRecipe(): ImageRecipe {
  const stages = dockerStages()
  const [build = [], image = []] = stages.slice(-2)
  const commands = build
    .filter(({ name, text }) => name === 'RUN' && text.startsWith('node '))
    .map(({ text }) => text.split(' ').slice(1))
  const copies: { from: string; to: string }[] = []
  const config: Record<string, unknown> = {}
  const env: string[] = []
  for (const { name, text } of image) {
    if (name === 'COPY') {
      const [, from, to] = new RegExp(`^--from=build ${buildFolder}(\\S+) (/\\S*)$`).exec(text) ?? []
      if (from === undefined || to === undefined) throw new Error(`cannot be copied without Docker: ${text}`)
      copies.push({ from, to })
    } else if (name === 'ENV') env.push(text)
    else if (name === 'USER') config['User'] = text
    else if (name === 'WORKDIR') config['WorkingDir'] = text
    else if (name === 'EXPOSE')
      config['ExposedPorts'] = Object.fromEntries(text.split(' ').map((port) => [`${port}/tcp`, {}]))
    else if (name === 'ENTRYPOINT') config['Entrypoint'] = JSON.parse(text)
    else if (name === 'CMD') config['Cmd'] = JSON.parse(text)
    else if (name !== 'FROM' || text !== 'scratch')
      throw new Error(`cannot be carried out without Docker: ${name} ${text}`)
  }
  return { commands, copies, config: { ...config, Env: env } }
}
