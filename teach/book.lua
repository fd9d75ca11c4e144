-- Makes one book of the lessons, for pandoc. Titles, "3. Never build J", get the id lesson-3;
-- links to a page of the book lead there, and those to other files to where these lie, seen from the
-- book: in the folder `lessons`, which the metadata names, or above it. Pictures become part of the
-- book; as images of their own, so that their styles do not meet. Indented lines, which are formulas as
-- they are typed, "J_ij = a_i ((i == j) - a_j)", are typeset; fenced ones stay as they are.
local lessons

local function file_of(target)
    local folder, rest = lessons, target
    while rest:sub(1, 3) == "../" and folder:match("[^/.]+$") do
        folder, rest = folder:gsub("/?[^/]+$", ""), rest:sub(4)
    end
    return folder .. "/" .. rest
end

local function link(element)
    local number = element.target:match("^(%d+)_[%w_]*%.md$")
    if number then
        element.target = "#lesson-" .. tonumber(number)
    elseif element.target == "../ranks.md" then
        element.target = "#over-many-ranks"
    elseif element.target == "../wrong_gradients.md" then
        element.target = "#wrong-gradients-measured"
    elseif element.target == "../glossary.md" then
        element.target = "#glossary"
    elseif not element.target:match("^%a+:") and not element.target:match("^#") then
        if lessons == "" then
            return element.content -- the files are elsewhere
        end
        element.target = file_of(element.target)
    end
    return element
end

local function image(element)
    local file = assert(io.open("teach/" .. element.src))
    local svg = file:read("a"):gsub("[^%w%-./:;=,()@]", function(c)
        return ("%%%02X"):format(c:byte())
    end)
    file:close()
    element.src = "data:image/svg+xml," .. svg
    return element
end

-- Names with more than one letter that are symbols; others are words.
local symbols = {exp = "\\exp", ln = "\\ln", max = "\\max", sqrt = "\\sqrt", sum = "\\sum",
                 ds = "ds", dz = "dz", dv = "dv", dh = "dh", dx = "dx", dw = "dw", dy = "dy", dL = "dL"}

local function name(word)
    return symbols[word] or (#word > 1 and "\\text{" .. word .. "}") or word
end

local signs = {["=="] = "=", ["!="] = "\\ne ", ["=?"] = "\\overset{?}{=}", ["->"] = "\\to ", ["+="] = "\\mathrel{+}=",
               ["*"] = "\\cdot ", ["..."] = "\\dots ", ["||"] = "\\|", ["%"] = "\\%", ["#"] = "\\#"}

-- A line of a formula as TeX.
local function tex(line)
    local result, at = "", 1
    while at <= #line do
        local word, below = line:match("^(%a+)_(%w+)", at)
        local plain, sign = line:match("^%a+", at), nil
        for length = 3, 1, -1 do
            sign = sign or (signs[line:sub(at, at + length - 1)] and line:sub(at, at + length - 1))
        end
        if word then
            local is_word = #below > 2 and below:match("^%a+$")
            result = result .. name(word) .. "_{" .. (is_word and "\\text{" .. below .. "}" or below) .. "}"
            at = at + #word + 1 + #below
        elseif plain then
            result, at = result .. name(plain) .. " ", at + #plain
        elseif sign then
            result, at = result .. signs[sign], at + #sign
        else
            result, at = result .. line:sub(at, at), at + 1
        end
    end
    return result
end

-- Lines below each other, with their first equals signs in a column and remarks after the formula.
local function formula(block)
    if #block.classes > 0 then
        return nil
    end
    local lines = {}
    for line in block.text:gmatch("[^\n]+") do
        local left, remark = line:match("^(.-%S)%s%s%s+([^=%s].*)$")
        local case = ""
        if remark and remark:match(" = ") then -- a case and its formula
            case, left, remark = tex(left) .. "\\quad ", remark, nil
        end
        local typeset = tex(left or line)
        if not typeset:find("overset", 1, true) then
            typeset = typeset:gsub("=", "&=", 1)
        end
        remark = remark and " \\qquad \\text{" .. remark:gsub("[_^#%%&]", "\\%0") .. "}" or ""
        lines[#lines + 1] = case .. typeset .. remark
    end
    return pandoc.Para({pandoc.Math("DisplayMath", "\\begin{aligned}" .. table.concat(lines, "\\\\") .. "\\end{aligned}")})
end

local function header(element)
    local number = pandoc.utils.stringify(element):match("^(%d+)%. ")
    if element.level == 1 and number then
        element.identifier = "lesson-" .. number
    end
    return element
end

return {
    { Meta = function(meta) lessons = pandoc.utils.stringify(meta.lessons) end },
    { Link = link, Header = header, Image = image, CodeBlock = formula },
}
