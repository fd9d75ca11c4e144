-- Makes one book of the lessons, for pandoc. Titles, "3. Never build J", get the id lesson-3;
-- links to a page of the book lead there, and those to other files to where these lie, seen from the
-- book: in the folder `lessons`, which the metadata names, or above it. In the folder `site`, which it may name, a
-- page source/FILE.html shows a file. A link to what the book lacks becomes its text. Pictures become part of the book; as images of their own, so that their styles do not meet.
local lessons, site
local ids = {}
local pages = {["../ranks.md"] = "#over-many-ranks", ["../wrong_gradients.md"] = "#wrong-gradients-measured",
               ["../glossary.md"] = "#glossary", ["../micro.c"] = "#all-of-it-in-one-file"}

local function file_of(target)
    local folder, rest = lessons, target
    while rest:sub(1, 3) == "../" and folder:match("[^/.]+$") do
        folder, rest = folder:gsub("/?[^/]+$", ""), rest:sub(4)
    end
    return folder .. "/" .. rest
end

local function link(element)
    local number = element.target:match("^(%d+)_[%w_]*%.md$")
    if number or pages[element.target] then
        element.target = number and "#lesson-" .. tonumber(number) or pages[element.target]
        return (number or ids[element.target]) and element or element.content
    elseif not element.target:match("^%a+:") and not element.target:match("^#") then
        element.target = file_of((element.target:gsub("#.*", ""))) .. (site == "" and "" or ".html")
        local shown = site == "" or io.open(site .. "/" .. element.target)
        if not shown then
            return element.content
        end
    end
    return element
end

local function image(element)
    local file = assert(io.open("teach/" .. element.src:gsub("^%.%./", "")))
    local svg = file:read("a"):gsub("[^%w%-./:;=,()@]", function(c)
        return ("%%%02X"):format(c:byte())
    end)
    file:close()
    element.src = "data:image/svg+xml," .. svg
    return element
end

-- No line ends between a number and its %, or a formula and the comma or bracket beside it: a span has both.
local function together(inlines)
    for i = #inlines - 1, 1, -1 do
        if inlines[i].t == "Space" and inlines[i + 1].t == "Str" and inlines[i + 1].text:match("^%%") then
            inlines[i] = pandoc.Str("\u{a0}")
        end
        local kinds = inlines[i].t .. inlines[i + 1].t
        if kinds == "MathStr" or kinds == "StrMath" or kinds == "StrSpan" then
            inlines[i] = pandoc.Span({inlines[i], inlines:remove(i + 1)}, {class = "together"})
        end
    end
    return inlines
end

-- A displayed formula scrolls in a box of its own, where it is wider than the page.
local function display(paragraph)
    local formula = #paragraph.content == 1 and paragraph.content[1]
    if formula and formula.t == "Math" and formula.mathtype == "DisplayMath" then
        return pandoc.Div(paragraph, {class = "formula", tabindex = 0})
    end
end

local function header(element)
    local number = pandoc.utils.stringify(element):match("^(%d+)%. ")
    if element.level == 1 and number then
        element.identifier = "lesson-" .. number
    end
    return element
end

return {
    { Meta = function(meta) lessons, site = pandoc.utils.stringify(meta.lessons), pandoc.utils.stringify(meta.site) end,
      Header = function(element) ids["#" .. element.identifier] = true end },
    { Link = link, Header = header, Image = image, Para = display, Inlines = together },
}
