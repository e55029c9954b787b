/** Linear programs: minimum cost with linear constraints. */
import highsModule from 'highs'

// The package's types describe its CommonJS build, which exports the loader as a member.
const loadHighs = highsModule as unknown as typeof highsModule.default

/** Loaded once: loading takes longer than solving most programs. */
let loading: ReturnType<typeof loadHighs> | undefined

/** The fastest strategy of HiGHS here: 2 s for diverse(N), instead of 10 with the default. */
const primalSimplex = 4

/** The solution of a program. */
export interface Solution {
  /** The minimum cost. */
  readonly cost: number
  /** The amount of each column. */
  readonly values: Float64Array
  /** Dual prices: the cost of increasing each row's lower limit by one; empty for integer programs. */
  readonly rowPrices: Float64Array
}

/** Columns and rows are identified by their index. */
export class LinearProgram {
  readonly #costs: number[] = []
  readonly #rowLower: number[] = []
  readonly #rowUpper: number[] = []
  readonly #columns: (readonly [row: number, value: number])[][] = []
  readonly #areWhole: boolean

  /** @param areWhole whether columns must be integers. */
  constructor({ areWhole = false }: { readonly areWhole?: boolean } = {}) {
    this.#areWhole = areWhole
  }

  addRow(lower: number, upper: number): number {
    this.#rowLower.push(lower)
    return this.#rowUpper.push(upper) - 1
  }

  addColumn(cost: number, entries: (readonly [row: number, value: number])[]): void {
    this.#costs.push(cost)
    this.#columns.push(entries)
  }

  /** @throws Error if there is no solution. */
  async solve(): Promise<Solution> {
    const highs = await (loading ??= loadHighs())
    const starts = [0]
    for (const entries of this.#columns) starts.push((starts.at(-1) as number) + entries.length)
    const entries = this.#columns.flat()
    const [numCols, numRows] = [this.#costs.length, this.#rowLower.length]
    const { integer } = highs.constants.variableType
    const data = {
      numCols,
      numRows,
      colCost: this.#costs,
      colLower: new Float64Array(numCols),
      colUpper: new Float64Array(numCols).fill(highs.infinity),
      rowLower: this.#rowLower,
      rowUpper: this.#rowUpper,
      matrix: {
        format: 'csc' as const,
        numRows,
        numCols,
        starts: Int32Array.from(starts),
        indices: Int32Array.from(entries, ([row]) => row),
        values: Float64Array.from(entries, ([, value]) => value),
      },
      ...(this.#areWhole && { integrality: new Int32Array(numCols).fill(integer) }),
    }
    return highs.withModel(data, (model) => {
      model.options.set({ output_flag: false, simplex_strategy: primalSimplex })
      model.run()
      const status = model.getModelStatus()
      if (status !== highs.constants.modelStatus.optimal) throw new Error(`no lower bound: status ${status}`)
      const { colValue, rowDual } = model.getSolution()
      return { cost: model.getObjectiveValue(), values: colValue, rowPrices: rowDual }
    })
  }
}
